"""How a scan spells its columns, so that neither push-down by name nor nested pruning can meet an old column.

Spark resolves a file's columns by field id but pushes filters down by name, and drops the id of a struct that it
prunes. A name that once meant another column is therefore spelled with its id (`b__20`), and a struct that was renamed
is read whole, through a cast.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from lakeproof.iceberg import pyiceberg_names as iceberg
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.default_values import existing, read_as_text
from lakeproof.spark.jvm.spark_types import FIELD_ID, nullable, to_spark_schema, to_spark_type


def named_column(*path: str) -> Column:
    """The column of exactly this name, or a field inside it; a name may hold dots and backticks."""
    return F.col(quoted(*path))


def quoted(*path: str) -> str:
    """The names as SQL writes them, whatever they hold."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


class _KeptColumns:
    """Columns that only name others are the same for every scan of a Spark context; each takes dozens of calls."""

    def __init__(self) -> None:
        self.context: Any = None
        self.columns: dict[Hashable, Column] = {}

    def get(self, key: Hashable, make: Callable[[], Column]) -> Column:
        """The column under that key, made once for the context that is active."""
        active = spark41.active_context()
        if self.context is not active or len(self.columns) > 10_000:
            self.context, self.columns = active, {}
        if key not in self.columns:
            self.columns[key] = make()
        return self.columns[key]


kept_columns = _KeptColumns()


class ScanColumn(NamedTuple):
    """One column of a table: as the scan reads it, and as the table shows it."""

    read: spark.StructField
    name: str
    type: spark.DataType

    def shown(self) -> Column:
        """The column under its own name and type, without field ids (they would leak into the user's own files)."""
        kind = self.type if self.read.dataType != self.type else None
        key = (self.read.name, self.name, None if kind is None else kind.json())
        return kept_columns.get(key, lambda: self._shown(kind))

    def _shown(self, kind: spark.DataType | None) -> Column:
        found = named_column(self.read.name)
        return (found if kind is None else found.cast(kind)).alias(self.name, metadata={})


class SchemaHistory(NamedTuple):
    """What the table's schemas so far say: ids by (parent id, name), and names by id."""

    ids: Mapping[tuple[int, str], set[int]]
    names: Mapping[int, set[str]]

    def reused(self, parent: int, name: str) -> bool:
        """Whether the name has meant two columns."""
        return len(self.ids.get((parent, name), ())) > 1

    def renamed(self, field_id: int) -> bool:
        """Whether the column has had two names."""
        return len(self.names.get(field_id, ())) > 1


def history_of(table: iceberg.Table) -> SchemaHistory:
    """The names of all schemas that the table has had."""
    ids: dict[tuple[int, str], set[int]] = {}
    names: dict[int, set[str]] = {}

    def note(parent: int, field: spark.StructField) -> None:
        number = field.metadata[FIELD_ID]
        ids.setdefault((parent, field.name.lower()), set()).add(number)
        names.setdefault(number, set()).add(field.name)
        for child in _structs(field.dataType):
            for inner in child.fields:
                note(number, inner)

    for schema in table.schemas().values():
        for field in to_spark_schema(schema).fields:
            note(-1, field)
    return SchemaHistory(ids, names)


def scan_columns(schema: iceberg.Schema, history: SchemaHistory) -> list[ScanColumn]:
    """The columns of a schema, spelled safely, each with the default of files that lack it."""
    pairs = zip(schema.fields, to_spark_schema(schema).fields, strict=True)
    return [_as_text(own, _scan_column(field, history, existing(own))) for own, field in pairs]


def _as_text(own: iceberg.NestedField, column: ScanColumn) -> ScanColumn:
    """Bytes with a default are read as text, and shown as bytes again."""
    if not read_as_text(own):
        return column
    read = column.read
    return column._replace(read=spark.StructField(read.name, spark.StringType(), True, read.metadata))


def metadata_names(columns: list[ScanColumn], schema: iceberg.Schema) -> dict[str, str]:
    """The scan's names, those inside structs dotted, as the schema that plans the scan spells them.

    A column that this schema lacks, or knows under another type, is left out: nothing can be said about it.
    """
    found: dict[str, str] = {}

    def note(field: spark.StructField, prefix: str) -> None:
        number = field.metadata[FIELD_ID]
        name = schema.find_column_name(number)
        if name is None:
            return
        if isinstance(field.dataType, spark.StructType):
            for inner in field.dataType.fields:
                note(inner, f"{prefix}{field.name}.")
        elif nullable(to_spark_type(schema.find_type(number), name)) == field.dataType:
            found[f"{prefix}{field.name}"] = name

    for column in columns:
        note(column.read, "")
    return found


def _scan_column(field: spark.StructField, history: SchemaHistory, default: dict[str, str]) -> ScanColumn:
    number = field.metadata[FIELD_ID]
    name = f"{field.name}__{number}" if history.reused(-1, field.name.lower()) else field.name
    kind, shown = nullable(field.dataType), nullable(field.dataType)
    structs = list(_structs(kind))
    if structs and (name != field.name or history.renamed(number) or _reused_inside(number, kind, history)):
        kind = _numbered(kind)
    return ScanColumn(spark.StructField(name, kind, True, {FIELD_ID: number, **default}), field.name, shown)


def _reused_inside(parent: int, kind: spark.DataType, history: SchemaHistory) -> bool:
    return any(
        history.reused(parent, field.name.lower()) or _reused_inside(field.metadata[FIELD_ID], field.dataType, history)
        for struct in _structs(kind)
        for field in struct.fields
    )


def _numbered(kind: spark.DataType) -> spark.DataType:
    """The same type with every field of a struct spelled with its id."""
    if isinstance(kind, spark.StructType):
        return spark.StructType(
            [
                spark.StructField(f"{f.name}__{f.metadata[FIELD_ID]}", _numbered(f.dataType), f.nullable, f.metadata)
                for f in kind.fields
            ]
        )
    if isinstance(kind, spark.ArrayType):
        return spark.ArrayType(_numbered(kind.elementType), kind.containsNull)
    if isinstance(kind, spark.MapType):
        return spark.MapType(_numbered(kind.keyType), _numbered(kind.valueType), kind.valueContainsNull)
    return kind


def _structs(kind: spark.DataType) -> list[spark.StructType]:
    """The outermost structs inside a type."""
    if isinstance(kind, spark.StructType):
        return [kind]
    if isinstance(kind, spark.ArrayType):
        return _structs(kind.elementType)
    if isinstance(kind, spark.MapType):
        return _structs(kind.keyType) + _structs(kind.valueType)
    return []
