"""Identity partition columns are Spark's own partition columns: their values come from metadata, not from the files.

Every row of a file has the partition value of its file. So Spark need not read such a column, filters on it are done
once for each partition, and a join may prune partitions while it runs. Spark does not look again at these filters:
they are decided here by its own evaluation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from lakeproof.iceberg.pyiceberg_names import PartitionSpec
from lakeproof.iceberg.reading.planning import ScanPlan
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, items_of
from lakeproof.spark.jvm.spark_types import FIELD_ID
from lakeproof.spark.jvm.typed_json import Long, json_of, read_typed
from lakeproof.spark.reading.columns import ScanColumn, quoted

# Types of which a partition value is the value of the rows, to the bit, whichever engine wrote it: not floats, of which
# 0.0 and -0.0 may share a partition, and nothing that one engine or the other keeps as text.
_CERTAIN = (
    spark.BooleanType,
    spark.IntegerType,
    spark.LongType,
    spark.StringType,
    spark.DateType,
    spark.TimestampType,
    spark.TimestampNTZType,
)
_LONGS = (spark.LongType, spark.TimestampType, spark.TimestampNTZType)


class ConstantColumn(NamedTuple):
    """A column that is the same for all rows of a file: as the scan reads it, and its field id."""

    field: spark.StructField
    source_id: int

    def value(self, raw: Any) -> Any:
        """A partition value as the JVM is to hold it."""
        return Long(raw) if raw is not None and isinstance(self.field.dataType, _LONGS) else raw


class SameValues(NamedTuple):
    """Files, by number, that share the values of the partition columns."""

    values: tuple[Any, ...]
    files: Sequence[int]


def partition_columns_of(
    columns: Iterable[ScanColumn], specs: Sequence[PartitionSpec], planned: Callable[[], ScanPlan]
) -> tuple[ConstantColumn, ...]:
    """The columns that are identity partition columns in each of the specs that the planned files have."""
    found = []
    for column in columns:
        made = ConstantColumn(column.read, column.read.metadata[FIELD_ID])
        certain = isinstance(column.type, _CERTAIN) and column.type == column.read.dataType
        if not certain or not all(_place(made.source_id, each) for each in specs):
            continue
        if specs and not (isinstance(made.field.dataType, spark.StringType) and _has_broken_text(planned(), made)):
            found.append(made)
    return tuple(found)


def _has_broken_text(planned: ScanPlan, column: ConstantColumn) -> bool:
    """Whether a value may stand for bytes that are no text, which files keep and metadata cannot."""
    places = ((each.segment, _place(column.source_id, planned.specs[each.spec_id])) for each in planned.picked)
    values = [segment.partition(place or 0) for segment, place in places]
    return any(pc.any(pc.match_substring(each, "\ufffd")).as_py() for each in values if each is not None)


def _place(source_id: int, spec: PartitionSpec) -> int | None:
    """The id of the field that holds the column's values as they are."""
    places = (f.field_id for f in spec.fields if f.source_id == source_id and str(f.transform) == "identity")
    return next(places, None)


def as_ddl(columns: Iterable[ConstantColumn]) -> list[str]:
    """The columns as Spark declares them; `timestamp` alone would mean what the session says."""
    kinds = ((column.field.name, column.field.dataType.simpleString()) for column in columns)
    return [f"{quoted(name)} {'timestamp_ltz' if kind == 'timestamp' else kind}" for name, kind in kinds]


def by_values(planned: ScanPlan, columns: Sequence[ConstantColumn]) -> list[SameValues]:
    """The planned files by the values of these columns; by array operations, for there may be a million."""
    names = [f"c{number}" for number in range(len(columns))]
    parts, first = [], 0
    for picked in planned.picked:
        taken, spec = pa.array(picked.rows), planned.specs[picked.spec_id]
        found = [picked.segment.partition(_place(column.source_id, spec) or 0) for column in columns]
        values = [pa.nulls(len(taken)) if each is None else each.take(taken) for each in found]
        parts.append(pa.table([*values, pa.array(range(first, first + len(taken)))], [*names, "n"]))
        first += len(taken)
    if not parts:
        return []
    whole = pa.concat_tables(parts, promote_options="permissive")
    grouped = whole.group_by(names, use_threads=False).aggregate([("n", "list")])
    raw = zip(*(grouped[name].to_pylist() for name in names), strict=True)
    values_of = [tuple(c.value(one) for c, one in zip(columns, each, strict=True)) for each in raw]
    return [SameValues(*each) for each in zip(values_of, grouped["n_list"].to_pylist(), strict=True)]


def rows_that_match(
    gateway: Gateway, filters: Any, names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> Sequence[int]:
    """The numbers of the rows that pass all filters, as Spark evaluates them; all are asked for in one call."""
    left: Sequence[int] = range(len(rows))
    for condition in items_of(filters):
        if not left:
            break
        references = condition.references().toSeq()
        asked = [names.index(str(attribute.name())) for attribute in items_of(references)]
        text = ",".join(f'{{"values":{json_of([*(rows[n][at] for at in asked), n])}}}' for n in left)
        held = read_typed(gateway, f"[{text}]", gateway.list_of(spark41.GENERIC_INTERNAL_ROW))
        held.removeIf(_test(gateway, condition, references).negate())
        left = [row["values"][-1] for row in json.loads(gateway.mapper.writeValueAsString(held))]
    return left


def _test(gateway: Gateway, condition: Any, references: Any) -> Any:
    """Spark's evaluation of a condition as a predicate of Java's own."""
    attributes = gateway.module(spark41.EXPRESSIONS_PACKAGE).AttributeSeq(references)
    bound = gateway.module(spark41.BIND_REFERENCES).bindReference(condition, attributes, False)
    evaluation = gateway.once("evaluation", lambda: _evaluation(gateway))
    predicate = gateway.module(spark41.PREDICATE).createInterpreted(bound)
    made = gateway.static("java.lang.invoke.MethodHandleProxies", "asInterfaceInstance")
    return made(gateway.class_of("java.util.function.Predicate"), evaluation.bindTo(predicate))


def _evaluation(gateway: Gateway) -> Any:
    """The method of Spark's predicates that takes a row."""
    of_rows = gateway.class_of(spark41.BASE_PREDICATE)
    method = of_rows.getMethod("eval", gateway.array("java.lang.Class", [gateway.class_of(spark41.INTERNAL_ROW)]))
    return gateway.jvm.java.lang.invoke.MethodHandles.publicLookup().unreflect(method)
