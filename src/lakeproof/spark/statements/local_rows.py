"""A few rows that are known already become a DataFrame that needs no job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from lakeproof.spark.jvm.spark41 import to_arrow_schema


def local_rows(session: SparkSession, rows: Sequence[Sequence[Any]], schema: spark.StructType) -> DataFrame:
    """The rows under this schema; through Arrow, because a list would be spread over the executors first."""
    if not schema.fields:
        return session.range(0).select()
    kinds = to_arrow_schema(schema)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, kinds.types, strict=True)]
    names = [f"column {number}" for number in range(len(kinds))]
    # Without a schema a time that has no zone would be taken for one of the session's.
    shown = spark.StructType([spark.StructField(n, f.dataType, True) for n, f in zip(names, schema, strict=True)])
    return session.createDataFrame(pa.Table.from_arrays(arrays, names), shown).toDF(*kinds.names)


def texts(session: SparkSession, names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> DataFrame:
    """Rows of text."""
    return local_rows(session, rows, spark.StructType([spark.StructField(n, spark.StringType(), True) for n in names]))
