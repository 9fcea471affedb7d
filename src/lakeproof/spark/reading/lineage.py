"""Row lineage in a scan: what a file stores of a row, else what follows from the file.

Spark's reader takes hidden columns that are small numbers only as INT, so that a long travels as its two halves.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from lakeproof.iceberg.format_v3.row_ids import LAST_UPDATED_FIELD, ROW_ID_FIELD
from lakeproof.iceberg.reading.planning import ScanPlan
from lakeproof.spark.jvm.spark_types import FIELD_ID
from lakeproof.spark.reading.deletes import ROW_INDEX

# Under names of their own: a column of the table may be called as the stored ones are.
_STORED_ID, _STORED_NUMBER = "_lakeproof_stored_id", "_lakeproof_stored_number"
_FIRST, _NUMBER = "_lakeproof_first_id", "_lakeproof_number_of_file"
STORED_ID = spark.StructField(_STORED_ID, spark.LongType(), True, {FIELD_ID: ROW_ID_FIELD})
STORED_NUMBER = spark.StructField(_STORED_NUMBER, spark.LongType(), True, {FIELD_ID: LAST_UPDATED_FIELD})
HIDDEN_SCHEMA = ", ".join(f"{name}_{half} INT" for name in (_FIRST, _NUMBER) for half in ("high", "low"))
Halves = tuple[int | None, int | None]


def file_constants(planned: ScanPlan) -> list[tuple[int | None, int | None]]:
    """Of each planned file its first row id and its data sequence number; both `None`: its rows have no ids."""
    pairs = zip(*(planned.files[name].to_pylist() for name in ("first_row_id", "data_sequence_number")), strict=True)
    return [(first, None if first is None else number) for first, number in pairs]


def hidden_values(planned: ScanPlan) -> list[tuple[int | None, ...]]:
    """The same as values of the hidden columns `HIDDEN_SCHEMA`."""
    return [(*_halves(first), *_halves(number)) for first, number in file_constants(planned)]


def row_id(first: Column | None = None) -> Column:
    """The id of a row; `first` is that of its file, by default as the hidden columns say."""
    of_file = _long(_FIRST) if first is None else first
    return F.coalesce(F.col(_STORED_ID), of_file + F.col(ROW_INDEX))


def last_updated(number: Column | None = None) -> Column:
    """The number of the commit that last changed a row; `number` is that of its file."""
    return F.coalesce(F.col(_STORED_NUMBER), _long(_NUMBER) if number is None else number)


def _halves(value: int | None) -> Halves:
    if value is None:
        return None, None
    low = value & 0xFFFFFFFF
    return value >> 32, low - (1 << 32) if low >> 31 else low


def _long(name: str) -> Column:
    high, low = F.col(f"{name}_high").cast("long"), F.col(f"{name}_low").cast("long")
    return F.shiftleft(high, 32).bitwiseOR(low.bitwiseAND(F.lit(0xFFFFFFFF)))
