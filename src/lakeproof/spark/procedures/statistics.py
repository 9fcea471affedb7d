"""compute_table_stats: how many different values each column has, told as Apache Iceberg tells it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakeproof.errors import InvalidInput
from lakeproof.iceberg import pyiceberg_names as iceberg
from lakeproof.iceberg.tables.refs import known_snapshot
from lakeproof.iceberg.tables.tables import find_column, name_parts
from lakeproof.iceberg.upkeep.statistics import ColumnSketch, set_statistics
from lakeproof.spark.engine import Engine
from lakeproof.spark.procedures.calling import LONG, TEXT, Procedure, Row, table_named
from lakeproof.spark.reading.columns import named_column


def _table_stats(
    engine: Engine, table: str, snapshot_id: int | None = None, columns: tuple[Any, ...] = ()
) -> list[Row]:
    """Sketches of the values' bytes, as Iceberg's spec says them, so that other engines can unite theirs with ours."""
    found = table_named(engine, table)
    snapshot = found.current_snapshot() if snapshot_id is None else known_snapshot(found, snapshot_id)
    if snapshot is None:
        return []
    fields = _fields(found, [str(each) for each in columns])
    rows = engine.scan(found, version=str(snapshot.snapshot_id)).rows
    numbers = range(len(fields))
    values = rows.select(*(_bytes(field).alias(f"v{n}") for n, field in enumerate(fields)))
    counted = values.agg(*(F.call_function("theta_sketch_agg", F.col(f"v{n}")).alias(f"s{n}") for n in numbers)).select(
        *(F.col(f"s{n}") for n in numbers),
        *(F.call_function("theta_sketch_estimate", F.col(f"s{n}")).alias(f"n{n}") for n in numbers),
    )
    row = counted.collect()[0]
    told = [ColumnSketch(each.field_id, bytes(row[f"s{n}"]), int(row[f"n{n}"])) for n, each in enumerate(fields)]
    return [(set_statistics(found, snapshot, told),)]


def _fields(table: iceberg.Table, names: list[str]) -> list[iceberg.NestedField]:
    place = f"table {'.'.join(table.name())}"
    if not names:
        return [field for field in table.schema().fields if isinstance(field.field_type, iceberg.PrimitiveType)]
    chosen = [find_column(table.schema(), ".".join(name_parts(name)), place) for name in names]
    for field in chosen:
        if field not in table.schema().fields or not isinstance(field.field_type, iceberg.PrimitiveType):
            hint = "name columns with single values"
            raise InvalidInput(f"there are no statistics of `{field.name}`", place=place, hint=hint)
    return chosen


def _bytes(field: iceberg.NestedField) -> Column:
    """A value in Iceberg's binary form of single values."""
    column, kind = named_column(field.name), field.field_type
    if isinstance(kind, iceberg.BooleanType):
        return F.when(column, F.unhex(F.lit("01"))).when(~column, F.unhex(F.lit("00")))
    if isinstance(kind, iceberg.IntegerType):
        return _little_endian(column.cast("bigint"), 8)
    if isinstance(kind, iceberg.DateType):
        return _little_endian(F.unix_date(column).cast("bigint"), 8)
    if isinstance(kind, iceberg.LongType):
        return _little_endian(column, 16)
    if isinstance(kind, iceberg.TimestamptzType):
        return _little_endian(F.unix_micros(column), 16)
    if isinstance(kind, iceberg.TimestampType):
        return _little_endian(F.unix_micros(F.to_utc_timestamp(column.cast("timestamp"), F.current_timezone())), 16)
    if isinstance(kind, iceberg.FloatType | iceberg.DoubleType):
        return _of_floats(column, wide=isinstance(kind, iceberg.DoubleType))
    if isinstance(kind, iceberg.DecimalType):
        return _of_decimals(column, kind.scale)
    return column.cast("binary")


def _little_endian(number: Column, digits: int) -> Column:
    text = F.lpad(F.right(F.hex(number), F.lit(digits)), digits, "0")
    return F.unhex(F.concat(*(F.substring(text, at, 2) for at in range(digits - 1, 0, -2))))


def _of_floats(column: Column, *, wide: bool) -> Column:
    owner, method = ("Double", "doubleToLongBits") if wide else ("Float", "floatToIntBits")
    bits = F.call_function("java_method", F.lit(f"java.lang.{owner}"), F.lit(method), F.coalesce(column, F.lit(0)))
    return F.when(column.isNotNull(), _little_endian(bits.cast("bigint"), 16 if wide else 8))


def _of_decimals(column: Column, scale: int) -> Column:
    # A nested function travels to the workers by value.
    def raw(value: Any) -> bytes | None:
        import decimal

        if value is None:
            return None
        with decimal.localcontext(prec=100):
            number = int(value.scaleb(scale))
        return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)

    return F.udf(raw, "binary", useArrow=False)(column)


def _partition_stats(engine: Engine, table: str, snapshot_id: int | None = None) -> list[Row]:
    found = table_named(engine, table)
    place = f"table {'.'.join(found.name())}"
    if not found.spec().fields:
        raise InvalidInput("the table has no partitions to tell statistics of", place=place)
    hint = "read them from the metadata table `partitions`"
    raise InvalidInput("statistics of partitions are not kept in a file", place=place, hint=hint)


STATISTICS_PROCEDURES: dict[str, Procedure] = {
    "compute_table_stats": Procedure(("table", "snapshot_id?", "columns?"), (("statistics_file", TEXT),), _table_stats),
    "compute_partition_stats": Procedure(
        ("table", "snapshot_id?"), (("partition_statistics_file", TEXT), ("snapshot_id", LONG)), _partition_stats
    ),
}
