"""Options and settings of readers and writers: honoured, or refused in a sentence, never ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.branches import TableAt, at_branch
from lakeproof.iceberg.tables.tables import joined_name, name_parts
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, items_of
from lakeproof.spark.reading.metadata_rows import metadata_rows
from lakeproof.spark.statements.instants import epoch_millis
from lakeproof.spark.statements.names import managed, named_metadata, under_its_name
from lakeproof.spark.statements.table_options import TABLE_OPTIONS
from lakeproof.spark.streams.changed_rows import appended_rows
from lakeproof.sql.lexer import mark_place, tokens_of

_READ = ("snapshot-id", "as-of-timestamp", "versionAsOf", "timestampAsOf", "branch", "tag")
_RANGE = ("start-snapshot-id", "end-snapshot-id")
_PROPERTY = "snapshot-property."
ACCEPT_ANY = "write.spark.accept-any-schema"


def read_with(engine: Engine, name: str, options: Mapping[str, str]) -> DataFrame | None:
    """What a reader's options ask for of a managed table or of its metadata; `None`: the name is neither."""
    table = managed(engine, name)
    if table is not None:
        return under_its_name(engine, table, rows_with(engine, table, options))
    place = f"table {name}"
    found = named_metadata(engine, name)
    if found is not None:
        _refuse_unknown(options, _READ, place)
        at = _version(engine, found.table, options, place)
        return metadata_rows(engine, found.table, found.name, version=at.version, timestamp_ms=at.timestamp_ms)
    *before, last = name_parts(name)
    base, dollar, _ = last.partition("$")
    if dollar and managed(engine, joined_name([*before, base])) is not None:
        hint = f"read {base}.snapshots, {base}.files and their siblings, which can be read at a version"
        raise InvalidInput("a view of a table's metadata takes no read options", place=place, hint=hint)
    return None


def rows_with(engine: Engine, table: Table, options: Mapping[str, str]) -> DataFrame:
    """The rows that a reader's options ask for: a version of the table, or what was appended between two snapshots."""
    place = f"table {'.'.join(table.name())}"
    _refuse_unknown(options, (*_READ, *_RANGE), place)
    refuse_two_versions(table, place)
    if not set(options) & set(_RANGE):
        at = _version(engine, table, options, place)
        return engine.scan(table, version=at.version, timestamp_ms=at.timestamp_ms).rows
    start, end = (_number(name, options[name], place) if name in options else None for name in _RANGE)
    if start is None:
        raise InvalidInput("end-snapshot-id needs a start-snapshot-id", place=place, hint="or read versionAsOf")
    return appended_rows(engine, table, start, end)


def refuse_two_versions(table: Table, place: str) -> None:
    """A name that says a version, of which another version is asked for."""
    if isinstance(table, TableAt):
        raise InvalidInput(f"{table.label} is a version already", place=place, hint="read the table, or leave one out")


def _refuse_unknown(options: Mapping[str, str], known: Sequence[str], place: str) -> None:
    unknown = [name for name in options if name not in {each.lower() for each in known}]
    if unknown:
        hint = f"known are {', '.join(known)}"
        raise InvalidInput(f"the read option `{unknown[0]}` is not supported", place=place, hint=hint)
    if len(options) > 1 and set(options) != set(_RANGE):
        raise InvalidInput(f"the read options {' and '.join(options)} exclude each other", place=place)


class _Version(NamedTuple):
    """A version or an instant, as one read option says it."""

    version: str | None = None
    timestamp_ms: int | None = None


def _version(engine: Engine, table: Table, options: Mapping[str, str], place: str) -> _Version:
    (name, value) = next(iter(options.items()))
    if name in ("branch", "tag"):
        ref = table.metadata.refs.get(value)
        if ref is None or ref.snapshot_ref_type.value != name:
            raise InvalidInput(f"there is no {name} `{value}`", place=place)
        return _Version(value)
    if name == "versionasof":
        return _Version(value)
    if name == "timestampasof":
        return _Version(timestamp_ms=epoch_millis(engine.gateway, value))
    number = _number(name, value, place)
    return _Version(value) if name == "snapshot-id" else _Version(timestamp_ms=number)


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
            found = found._replace(merge_schema=_switch(name, value, place))
        else:
            hint = "known are branch, mergeSchema and snapshot-property.NAME"
            raise InvalidInput(f"the write option `{name}` is not supported", place=place, hint=hint)
    if found.merge_schema and table.properties.get(ACCEPT_ANY, "false").lower() != "true":
        hint = f"alter table … set tblproperties ('{ACCEPT_ANY}'='true')"
        raise InvalidInput("mergeSchema needs a table that accepts any schema", place=place, hint=hint)
    return found


def _switch(name: str, value: str, place: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise InvalidInput(f"the write option `{name}` must be true or false, not {value!r}", place=place)
    return value.lower() == "true"


def summary_of_new_table(options: Mapping[str, str], place: str) -> dict[str, str]:
    """What the first snapshot of a table says besides, as its writer's options ask; nothing would honour another."""
    known = (*TABLE_OPTIONS, "mergeschema", "merge-schema")
    unknown = [name for name in options if not name.lower().startswith(_PROPERTY) and name.lower() not in known]
    if unknown:
        hint = f"known is {_PROPERTY}NAME; properties of the table are told by tableProperty or TBLPROPERTIES"
        raise InvalidInput(f"the write option `{unknown[0]}` is not supported here", place=place, hint=hint)
    return {name[len(_PROPERTY) :]: value for name, value in options.items() if name.lower().startswith(_PROPERTY)}


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
                hint="read another version with VERSION AS OF or TIMESTAMP AS OF; write to a branch as t.branch_b",
            )


def reader_options(gateway: Gateway, reader: Any) -> dict[str, str]:
    """The options of a `DataFrameReader`, a `DataFrameWriter` or a `DataFrameWriterV2` of the JVM, in lower case; what
    the snapshot's summary is told keeps its letters."""
    newer = str(reader.getClass().getSimpleName()) == "DataFrameWriterV2"
    held = gateway.hidden_field(reader, spark41.WRITER_OPTIONS if newer else spark41.OLD_WRITER_OPTIONS)
    if held.isEmpty():
        return {}
    told = gateway.java_map(held if newer else held.originalMap())
    return {_known_name(str(name)): str(value) for name, value in told.items()}


def _known_name(name: str) -> str:
    return _PROPERTY + name[len(_PROPERTY) :] if name.lower().startswith(_PROPERTY) else name.lower()


def refuse_layout(gateway: Gateway, writer: Any, table: Table) -> None:
    """A `DataFrameWriter` cannot lay out anew a table that is there: nothing would honour what it says of that."""
    place = f"table {'.'.join(table.name())}"
    for name, said in (
        (spark41.WRITER_BUCKETS, "bucketBy"),
        (spark41.WRITER_SORTING, "sortBy"),
        (spark41.STREAM_CLUSTERING, "clusterBy"),
    ):
        if gateway.hidden_field(writer, name).isDefined():
            hint = f"leave {said} out; ALTER TABLE changes partitions and order"
            raise InvalidInput(f"the table is there, and {said} cannot change it", place=place, hint=hint)
    found = gateway.hidden_field(writer, spark41.WRITER_PARTITION_COLUMNS)
    if not found.isDefined():
        return
    given = [str(column).lower() for column in items_of(found.get())]
    fields = [(table.schema().find_column_name(each.source_id), str(each.transform)) for each in table.spec().fields]
    if given and [(name, "identity") for name in given] != [(str(name).lower(), how) for name, how in fields]:
        raise InvalidInput(
            "the table is there, and partitionBy says other partitions than it has",
            place=place,
            hint="leave partitionBy out; ALTER TABLE ... ADD PARTITION FIELD changes them",
        )
