"""The files of a table in portions that one native scan can read: by field id, by name, or adopted from elsewhere.

Files that carry no field ids (adopted Parquet files, ORC) are read by name. Adopted files may also lack the columns
that their folders name; those come from the partition values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.pyiceberg_names import PartitionField, Schema, Table
from lakeproof.iceberg.reading.planning import ScanPlan
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, from_java, items_of
from lakeproof.spark.jvm.spark_types import FIELD_ID, nullable, to_spark_schema
from lakeproof.spark.reading.catalyst import trees_of
from lakeproof.spark.reading.columns import named_column
from lakeproof.spark.reading.file_index import ManagedFileIndex, ScanSource
from lakeproof.spark.statements.shows import human

NAME_MAPPING = "schema.name-mapping.default"
_NULL = "__HIVE_DEFAULT_PARTITION__"


class Portion(NamedTuple):
    """Files that are read alike; `paths` is `None` where these are all there are."""

    file_format: str = "PARQUET"
    by_name: bool = False
    spec_id: int | None = None
    paths: frozenset[str] | None = None


def portions_of(source: ScanSource) -> list[Portion]:
    """The portions of a snapshot; most tables have one."""
    properties = source.table.properties
    if NAME_MAPPING not in properties and "write.format.default" not in properties:
        return [Portion()]
    files = source.planned().files
    rows = list(zip(*(files[name].to_pylist() for name in ("path", "format", "spec_id")), strict=True))
    with ThreadPoolExecutor(8) as pool:
        parquet = [path for path, kind, _ in rows if kind.upper() == "PARQUET" and NAME_MAPPING in properties]
        with_ids = dict(zip(parquet, pool.map(lambda path: has_field_ids(source.table, path), parquet), strict=True))
    found: dict[tuple[str, bool, int | None], set[str]] = {}
    for path, kind, spec_id in rows:
        adopted = not with_ids.get(path, True)
        key = (kind.upper(), adopted or kind.upper() != "PARQUET", spec_id if adopted else None)
        found.setdefault(key, set()).add(path)
    if len(found) <= 1:
        key = next(iter(found), (properties.get("write.format.default", "parquet").upper(), False, None))
        return [Portion(*key)]
    return [Portion(*key, frozenset(paths)) for key, paths in found.items()]


def has_field_ids(table: Table, path: str) -> bool:
    """Whether the columns of a Parquet file carry field ids."""
    return _ids_in_file(path, table.io)


@lru_cache(maxsize=100_000)
def _ids_in_file(path: str, io: Any) -> bool:
    with io.new_input(path).open() as stream:
        return any(b"PARQUET:field_id" in (field.metadata or {}) for field in pq.read_schema(stream))


class NamedColumn(NamedTuple):
    """A column that is read by name: as which field (`None`: no file of the portion has it), and how it is shown."""

    read: spark.StructField | None
    name: str
    type: spark.DataType

    def shown(self) -> Column:
        """The column under its own name and type."""
        if self.read is None:
            return F.lit(None).cast(self.type).alias(self.name)
        return named_column(self.read.name).alias(self.name, metadata={})


def named_columns(schema: Schema, table: Table, portion: Portion) -> list[NamedColumn]:
    """The columns of a portion that is read by name."""
    mapped = _mapping(table) if portion.spec_id is not None else None
    if mapped is None:
        _require_one_name(schema, table)
    columns = []
    _refuse_defaults(schema, table)
    for field in to_spark_schema(schema).fields:
        name = field.name if mapped is None else mapped.get(field.metadata[FIELD_ID])
        kind = _without_ids(nullable(field.dataType))
        read = None if name is None else spark.StructField(name, kind, True)
        columns.append(NamedColumn(read, field.name, kind))
    return columns


def _require_one_name(schema: Schema, table: Table) -> None:
    """Where a column has had two names, or a name two columns, a file read by name may answer with the wrong column."""
    here = set(schema.field_ids)
    names = {schema.find_column_name(number): number for number in here}
    for older in table.schemas().values():
        for number in older.field_ids:
            name = older.find_column_name(number)
            if names.get(name, number) != number or (number in here and name not in names):
                raise InvalidInput(
                    f"files without field ids cannot be read: column `{name}` was renamed or dropped meanwhile",
                    place=f"table {'.'.join(table.name())}",
                    hint="let the engine that wrote them rewrite them as Parquet",
                )


def _refuse_defaults(schema: Schema, table: Table) -> None:
    """A file that is read by name does not say whether it lacks a column, or has it under another name."""
    for field in schema.fields:
        if field.initial_default is not None:
            raise InvalidInput(
                f"files without field ids cannot be read: column `{field.name}` has an initial default",
                place=f"table {'.'.join(table.name())}",
                hint="let the engine that wrote them rewrite them as Parquet",
            )


def _mapping(table: Table) -> dict[int, str]:
    """The oldest name of each column: the one that files without ids have."""
    listed = json.loads(table.properties[NAME_MAPPING])
    return {each["field-id"]: each["names"][0] for each in listed if each.get("names")}


def _without_ids(kind: spark.DataType) -> spark.DataType:
    if isinstance(kind, spark.StructType):
        return spark.StructType([spark.StructField(f.name, _without_ids(f.dataType), True) for f in kind.fields])
    if isinstance(kind, spark.ArrayType):
        return spark.ArrayType(_without_ids(kind.elementType), True)
    if isinstance(kind, spark.MapType):
        return spark.MapType(_without_ids(kind.keyType), _without_ids(kind.valueType), True)
    return kind


class AdoptedFileIndex(ManagedFileIndex):
    """Files whose identity partition columns come from metadata, whether the files have them or not."""

    def __init__(self, gateway: Gateway, source: ScanSource, portion: Portion, columns: list[NamedColumn]) -> None:
        super().__init__(gateway, source, only=portion.paths)
        table = source.table
        spec = table.specs()[portion.spec_id or 0]
        self.fields: dict[str, tuple[int, PartitionField]] = {}
        read = {column.name: column.read for column in columns if column.read is not None}
        for at, field in enumerate(spec.fields):
            name = table.schema().find_column_name(field.source_id)
            if str(field.transform) == "identity" and name in read:
                self.fields[read[name].name] = (at, field)
        chosen = spark.StructType(
            [column.read for column in columns if column.read and column.read.name in self.fields]
        )
        self.constants = chosen
        self.hidden_schema = gateway.java_schema(chosen)

    @from_java
    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        """Spark does not look again at filters on these columns, so they are decided here, by its own evaluation."""
        filters = list(items_of(partition_filters))
        trees = [*trees_of(self.gateway, partition_filters), *trees_of(self.gateway, data_filters)]
        planned = self.source.planned(self.source.translated(trees).filter)
        found = self.gateway.jvm.java.util.ArrayList()
        for texts, files in self._by_constants(planned).items():
            values = dict(zip(self.fields, texts, strict=True))
            if all(self._holds(each, values) for each in filters):
                statuses = self.statuses(planned, files)
                found.add(
                    self.gateway.named(spark41.PARTITION_DIRECTORY).apply(self._row(values, self.constants), statuses)
                )
        return self.gateway.jvm.PythonUtils.toSeq(found)

    def _by_constants(self, planned: ScanPlan) -> dict[tuple[str, ...], list[int]]:
        groups: dict[tuple[str, ...], list[int]] = {}
        partitions = planned.partitions()
        for number in self.kept(planned):
            texts = tuple(self._text(partitions[number][at], field) for at, field in self.fields.values())
            groups.setdefault(texts, []).append(number)
        return groups

    def _text(self, value: Any, field: PartitionField) -> str:
        return _NULL if value is None else human(self.source.table, field, value)

    def _row(self, values: Mapping[str, str], schema: spark.StructType) -> Any:
        """Text becomes values of the columns' types, as for a partition of Spark's own."""
        partition = spark41.case_class(
            self.gateway,
            spark41.CATALOG_TABLE_PARTITION,
            spark41.CATALOG_PARTITION_FIELDS,
            spec=self.gateway.scala_map(dict(values)),
            storage=self.gateway.named(spark41.CATALOG_STORAGE_FORMAT).empty(),
        )
        return partition.toRow(self.gateway.java_schema(schema), "UTC")

    def _holds(self, expression: Any, values: Mapping[str, str]) -> bool:
        references = expression.references().toSeq()
        names = [attribute.name() for attribute in items_of(references)]
        schema = spark.StructType([self.constants[name] for name in names])
        attributes = self.gateway.module(spark41.EXPRESSIONS_PACKAGE).AttributeSeq(references)
        bound = self.gateway.module(spark41.BIND_REFERENCES).bindReference(expression, attributes, False)
        predicate = self.gateway.module(spark41.PREDICATE).createInterpreted(bound)
        return bool(predicate.eval(self._row({name: values[name] for name in names}, schema)))

    class Java:
        """What py4j reads (it does not look at the parent class)."""

        implements = [spark41.FILE_INDEX]  # noqa: RUF012 - py4j asks for a list


def scan_names(columns: list[NamedColumn]) -> Iterator[tuple[str, str]]:
    """(scan name, table name) of the columns that a predicate may speak of."""
    for column in columns:
        if column.read is not None and not isinstance(column.type, spark.StructType | spark.ArrayType | spark.MapType):
            yield column.read.name, column.name
