"""A few rows that are known already become a DataFrame that needs no job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.jvm.spark41 import to_arrow_schema


def row_of_longs(gateway: Gateway, columns: Any, values: Sequence[int]) -> DataFrame:
    """One row of bigints under these attributes of a plan; Arrow would ask the JVM five times as often."""
    longs = gateway.once("reader of longs", lambda: _reader_of_longs(gateway)).readValue(json.dumps(list(values)))
    row = gateway.static(spark41.ROW_FACTORY, "create")(longs)
    relation = gateway.module(spark41.LOCAL_RELATION)
    return gateway.dataframe(relation.fromExternalRows(columns, gateway.one(row)))


def _reader_of_longs(gateway: Gateway) -> Any:
    """Reads JSON; py4j itself would hand over a small number as a Java int."""
    feature = gateway.enum("com.fasterxml.jackson.databind.DeserializationFeature", "USE_LONG_FOR_INTS")
    return getattr(gateway.mapper.readerFor(gateway.class_of("[Ljava.lang.Object;")), "with")(feature)


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
