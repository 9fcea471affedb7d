"""Column defaults: Iceberg's values as SQL text in the metadata of Spark's fields, where Spark looks for them.

What a file lacks, Spark's own Parquet reader fills with `EXISTS_DEFAULT` of the field that it is to read; what an
INSERT does not name, and the word DEFAULT, become `CURRENT_DEFAULT`.
"""

from __future__ import annotations

import datetime as dt
from typing import Any
from uuid import UUID

from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.iceberg import pyiceberg_names as iceberg
from lakeproof.spark.jvm.spark_types import to_spark_schema, to_spark_type

EXISTS, CURRENT = "EXISTS_DEFAULT", "CURRENT_DEFAULT"


def sql_text(value: Any, kind: iceberg.IcebergType) -> str:
    """A default as SQL text of Spark's type, whatever the session's settings about text are."""
    if isinstance(value, UUID):
        value = value.bytes
    if isinstance(value, bytes | bytearray):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, bool):
        return str(value).lower()
    text = value.isoformat(" ") if isinstance(value, dt.datetime) else str(value)
    target = to_spark_type(kind, "default").simpleString()
    plain = text.isprintable() and not {"'", "\\"} & set(text)
    return f"CAST({repr(text) if plain else _bytes_of(text)} AS {target})"


def _bytes_of(text: str) -> str:
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def with_write_defaults(schema: iceberg.Schema) -> spark.StructType:
    """The table's columns as Spark's writers see them."""
    fields = []
    for own, field in zip(schema.fields, to_spark_schema(schema).fields, strict=True):
        metadata = dict(field.metadata)
        if own.write_default is not None:
            metadata[CURRENT] = sql_text(own.write_default, own.field_type)
            metadata[EXISTS] = metadata[CURRENT]  # Spark wants both or none
        fields.append(spark.StructField(field.name, field.dataType, field.nullable, metadata))
    return spark.StructType(fields)


def existing(field: iceberg.NestedField) -> dict[str, str]:
    """What a field is read with, so that rows of files without it have its default."""
    _refuse_inside(field.field_type, field.name)
    value = field.initial_default
    if value is None:
        return {}
    if isinstance(field.field_type, iceberg.UUIDType | iceberg.FixedType):
        raise InvalidInput(
            f"column `{field.name}` of type {field.field_type} has an initial default, which Spark does not read",
            place=f"column {field.name}",
            hint="let the engine that added the column rewrite the table without the default",
        )
    text = f"CAST({sql_text(value, field.field_type)} AS STRING)" if read_as_text(field) else None
    return {EXISTS: text or sql_text(value, field.field_type)}


def read_as_text(field: iceberg.NestedField) -> bool:
    """Whether a column of bytes is read as text of the same bytes.

    Spark's reader of whole columns cannot fill in a default of bytes, and its reader of rows fills in wrong ones.
    """
    return field.initial_default is not None and isinstance(field.field_type, iceberg.BinaryType)


def fills_in_defaults(schema: spark.StructType) -> bool:
    """Whether rows may lack a field that has a default."""
    return any(EXISTS in field.metadata for field in schema.fields)


def _refuse_inside(kind: iceberg.IcebergType, place: str) -> None:
    """Spark's readers leave null where a file lacks a field inside a struct, whatever its metadata says."""
    for name, inner in _inside(kind):
        where = f"{place}.{name}"
        if inner.initial_default is not None:
            raise InvalidInput(
                f"column `{where}` has an initial default inside a struct, list or map, which Spark does not read",
                place=f"column {place}",
                hint="let the engine that added the column rewrite the table without the default",
            )
        _refuse_inside(inner.field_type, where)


def _inside(kind: iceberg.IcebergType) -> list[tuple[str, iceberg.NestedField]]:
    if isinstance(kind, iceberg.StructType):
        return [(field.name, field) for field in kind.fields]
    if isinstance(kind, iceberg.ListType):
        return [("element", kind.element_field)]
    return [("key", kind.key_field), ("value", kind.value_field)] if isinstance(kind, iceberg.MapType) else []
