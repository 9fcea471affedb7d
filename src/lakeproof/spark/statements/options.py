"""Options and settings of readers and writers: honoured, or refused in a sentence, never ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.reading.scan import Scan
from lakeproof.sql.lexer import mark_place, tokens_of

_READ = ("snapshot-id", "as-of-timestamp", "branch", "tag")


def scan_with(engine: Engine, table: Table, options: Mapping[str, str]) -> Scan:
    """The scan that a reader's options ask for."""
    place = f"table {'.'.join(table.name())}"
    unknown = [name for name in options if name not in _READ]
    if unknown:
        hint = f"known are {', '.join(_READ)}"
        raise InvalidInput(f"the read option `{unknown[0]}` is not supported", place=place, hint=hint)
    if len(options) > 1:
        raise InvalidInput(f"the read options {' and '.join(options)} exclude each other", place=place)
    (name, value) = next(iter(options.items()))
    if name in ("branch", "tag"):
        ref = table.metadata.refs.get(value)
        if ref is None or ref.snapshot_ref_type.value != name:
            raise InvalidInput(f"there is no {name} `{value}`", place=place)
        return engine.scan(table, version=value)
    if not value.lstrip("-").isdigit():
        raise InvalidInput(f"the read option `{name}` must be a number, not {value!r}", place=place)
    if name == "snapshot-id":
        return engine.scan(table, version=value)
    return engine.scan(table, timestamp_ms=int(value))


def refuse_write_options(table: Table, options: Mapping[str, str]) -> None:
    """A write has no options yet."""
    if options:
        raise InvalidInput(
            f"the write option `{next(iter(options))}` is not supported",
            place=f"table {'.'.join(table.name())}",
            hint="leave it out; lake.table(name).append(rows, branch=...) writes to a branch",
        )


def refuse_options_in(text: str, is_managed: Any) -> None:
    """`from t with (name = value)` on a managed table: nothing reads those options."""
    tokens = tokens_of(text)
    for at, token in enumerate(tokens[:-1]):
        if not (at and token.is_word("with") and tokens[at + 1].value == "(" and tokens[at + 1].kind == "mark"):
            continue
        first = at - 1
        while first >= 2 and tokens[first - 1].value == "." and tokens[first - 1].kind == "mark":
            first -= 2
        name = text[tokens[first].start : tokens[at - 1].end]
        if tokens[at - 1].kind in ("word", "quoted") and is_managed(name):
            raise InvalidInput(
                "options of a table are not supported here",
                place=mark_place(text, token.start),
                hint="read another version with VERSION AS OF or TIMESTAMP AS OF",
            )


def reader_options(gateway: Gateway, reader: Any) -> dict[str, str]:
    """The options of a `DataFrameReader`, a `DataFrameWriter` or a `DataFrameWriterV2` of the JVM."""
    newer = str(reader.getClass().getSimpleName()) == "DataFrameWriterV2"
    held = gateway.hidden_field(reader, spark41.WRITER_OPTIONS if newer else spark41.OLD_WRITER_OPTIONS)
    return {str(name).lower(): str(value) for name, value in gateway.java_map(held).items()}
