"""Options and settings of readers and writers: honoured, or refused in a sentence, never ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.branches import at_branch
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.reading.scan import Scan
from lakeproof.spark.statements.instants import epoch_millis
from lakeproof.spark.streams.changed_rows import appended_rows
from lakeproof.sql.lexer import mark_place, tokens_of

_READ = ("snapshot-id", "as-of-timestamp", "versionAsOf", "timestampAsOf", "branch", "tag")
_RANGE = ("start-snapshot-id", "end-snapshot-id")
_PROPERTY = "snapshot-property."
ACCEPT_ANY = "write.spark.accept-any-schema"


def rows_with(engine: Engine, table: Table, options: Mapping[str, str]) -> DataFrame:
    """The rows that a reader's options ask for: a version of the table, or what was appended between two snapshots."""
    place = f"table {'.'.join(table.name())}"
    unknown = [name for name in options if name not in {each.lower() for each in (*_READ, *_RANGE)}]
    if unknown:
        hint = f"known are {', '.join((*_READ, *_RANGE))}"
        raise InvalidInput(f"the read option `{unknown[0]}` is not supported", place=place, hint=hint)
    if len(options) > 1 and set(options) != set(_RANGE):
        raise InvalidInput(f"the read options {' and '.join(options)} exclude each other", place=place)
    if not set(options) & set(_RANGE):
        return _scan_with(engine, table, options, place).rows
    start, end = (_number(name, options[name], place) if name in options else None for name in _RANGE)
    if start is None:
        raise InvalidInput("end-snapshot-id needs a start-snapshot-id", place=place, hint="or read versionAsOf")
    return appended_rows(engine, table, start, end)


def _scan_with(engine: Engine, table: Table, options: Mapping[str, str], place: str) -> Scan:
    (name, value) = next(iter(options.items()))
    if name in ("branch", "tag"):
        ref = table.metadata.refs.get(value)
        if ref is None or ref.snapshot_ref_type.value != name:
            raise InvalidInput(f"there is no {name} `{value}`", place=place)
        return engine.scan(table, version=value)
    if name == "versionasof":
        return engine.scan(table, version=value)
    if name == "timestampasof":
        return engine.scan(table, timestamp_ms=epoch_millis(engine.gateway, value))
    number = _number(name, value, place)
    return engine.scan(table, version=value) if name == "snapshot-id" else engine.scan(table, timestamp_ms=number)


def _number(name: str, value: str, place: str) -> int:
    if not value.lstrip("-").isdigit():
        raise InvalidInput(f"the read option `{name}` must be a number, not {value!r}", place=place)
    return int(value)


class WriteOptions(NamedTuple):
    """Where a write goes, what its snapshot says besides, and whether columns that the table lacks are added."""

    branch: str = "main"
    summary: Mapping[str, str] = {}
    merge_schema: bool = False

    def on(self, engine: Engine, table: Table) -> tuple[Engine, Table]:
        """The engine and the table that such a write is made with."""
        told = {**engine.watch.summary, **self.summary}
        return (engine.watched(summary=told) if self.summary else engine), at_branch(table, self.branch)


def write_options(table: Table, options: Mapping[str, str]) -> WriteOptions:
    """What a writer's options say; one that nothing would honour is refused."""
    place, found = f"table {'.'.join(table.name())}", WriteOptions()
    for name, value in options.items():
        lower = name.lower()
        if lower == "branch":
            found = found._replace(branch=value)
        elif lower.startswith(_PROPERTY):
            found = found._replace(summary={**found.summary, name[len(_PROPERTY) :]: value})
        elif lower in ("mergeschema", "merge-schema"):
            found = found._replace(merge_schema=value.lower() == "true")
        else:
            hint = "known are branch, mergeSchema and snapshot-property.NAME"
            raise InvalidInput(f"the write option `{name}` is not supported", place=place, hint=hint)
    if found.merge_schema and table.properties.get(ACCEPT_ANY, "false").lower() != "true":
        hint = f"alter table … set tblproperties ('{ACCEPT_ANY}'='true')"
        raise InvalidInput("mergeSchema needs a table that accepts any schema", place=place, hint=hint)
    return found


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
