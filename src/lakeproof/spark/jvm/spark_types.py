"""Spark's types and Iceberg's, one for the other; field ids travel in the metadata of Spark's fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.iceberg import pyiceberg_names as iceberg

FIELD_ID = "parquet.field.id"
_TO_ICEBERG: dict[type, Callable[[], iceberg.PrimitiveType]] = {
    spark.BooleanType: iceberg.BooleanType,
    spark.ByteType: iceberg.IntegerType,
    spark.ShortType: iceberg.IntegerType,
    spark.IntegerType: iceberg.IntegerType,
    spark.LongType: iceberg.LongType,
    spark.FloatType: iceberg.FloatType,
    spark.DoubleType: iceberg.DoubleType,
    spark.StringType: iceberg.StringType,
    spark.VarcharType: iceberg.StringType,
    spark.CharType: iceberg.StringType,
    spark.BinaryType: iceberg.BinaryType,
    spark.DateType: iceberg.DateType,
    spark.TimestampType: iceberg.TimestamptzType,
    spark.TimestampNTZType: iceberg.TimestampType,
}
_TO_SPARK: dict[type, spark.DataType] = {
    iceberg.BooleanType: spark.BooleanType(),
    iceberg.IntegerType: spark.IntegerType(),
    iceberg.LongType: spark.LongType(),
    iceberg.FloatType: spark.FloatType(),
    iceberg.DoubleType: spark.DoubleType(),
    iceberg.StringType: spark.StringType(),
    iceberg.BinaryType: spark.BinaryType(),
    iceberg.FixedType: spark.BinaryType(),
    iceberg.UUIDType: spark.BinaryType(),
    iceberg.DateType: spark.DateType(),
    iceberg.TimestamptzType: spark.TimestampType(),
    iceberg.TimestampType: spark.TimestampNTZType(),
}


def to_iceberg_schema(schema: spark.StructType) -> iceberg.Schema:
    """Spark's schema as Iceberg's; ids are only unique, the catalog assigns the final ones."""
    ids = count(1)
    fields = [_iceberg_field(field, ids, field.name) for field in schema.fields]
    return iceberg.Schema(*fields)


def _iceberg_field(field: spark.StructField, ids: Iterator[int], place: str) -> iceberg.NestedField:
    number = next(ids)
    kind = to_iceberg_type(field.dataType, ids, place)
    return iceberg.NestedField(
        number, field.name, kind, required=not field.nullable, doc=field.metadata.get("comment") or None
    )


def to_iceberg_type(kind: spark.DataType, ids: Iterator[int], place: str) -> iceberg.IcebergType:
    """Spark's type as Iceberg's; one that Iceberg lacks is refused."""
    if isinstance(kind, spark.DecimalType):
        return iceberg.DecimalType(kind.precision, kind.scale)
    if isinstance(kind, spark.StructType):
        return iceberg.StructType(*[_iceberg_field(f, ids, f"{place}.{f.name}") for f in kind.fields])
    if isinstance(kind, spark.ArrayType):
        number = next(ids)
        element = to_iceberg_type(kind.elementType, ids, f"{place}.element")
        return iceberg.ListType(number, element, element_required=not kind.containsNull)
    if isinstance(kind, spark.MapType):
        key_id, value_id = next(ids), next(ids)
        key = to_iceberg_type(kind.keyType, ids, f"{place}.key")
        value = to_iceberg_type(kind.valueType, ids, f"{place}.value")
        return iceberg.MapType(key_id, key, value_id, value, value_required=not kind.valueContainsNull)
    found = _TO_ICEBERG.get(type(kind))
    if found is None or getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        raise InvalidInput(
            f"Iceberg has no type for `{kind.simpleString()}`", place=f"column {place}", hint="use another type"
        )
    return found()


def to_spark_schema(schema: iceberg.Schema) -> spark.StructType:
    """Iceberg's schema as Spark's: the ids in the fields' metadata, required columns not nullable."""
    return spark.StructType([_spark_field(field) for field in schema.fields])


def _spark_field(field: iceberg.NestedField) -> spark.StructField:
    metadata: dict[str, object] = {FIELD_ID: field.field_id}
    if field.doc:
        metadata["comment"] = field.doc
    return spark.StructField(field.name, to_spark_type(field.field_type, field.name), not field.required, metadata)


def to_spark_type(kind: iceberg.IcebergType, place: str) -> spark.DataType:
    """Iceberg's type as Spark's (a UUID and a fixed are binary); one that Spark cannot read is refused."""
    if isinstance(kind, iceberg.DecimalType):
        return spark.DecimalType(kind.precision, kind.scale)
    if isinstance(kind, iceberg.StructType):
        return spark.StructType([_spark_field(field) for field in kind.fields])
    if isinstance(kind, iceberg.ListType):
        return spark.ArrayType(to_spark_type(kind.element_type, place), not kind.element_required)
    if isinstance(kind, iceberg.MapType):
        key, value = to_spark_type(kind.key_type, place), to_spark_type(kind.value_type, place)
        return spark.MapType(key, value, not kind.value_required)
    found = _TO_SPARK.get(type(kind))
    if found is None:
        raise InvalidInput(f"Spark cannot read the type {kind}", place=f"column {place}", hint="drop the column")
    return found


def nullable(kind: spark.DataType) -> spark.DataType:
    """The same type with everything nullable inside, as files are read."""
    if isinstance(kind, spark.StructType):
        return spark.StructType(
            [spark.StructField(f.name, nullable(f.dataType), True, f.metadata) for f in kind.fields]
        )
    if isinstance(kind, spark.ArrayType):
        return spark.ArrayType(nullable(kind.elementType), True)
    if isinstance(kind, spark.MapType):
        return spark.MapType(nullable(kind.keyType), nullable(kind.valueType), True)
    return kind


def has_collections(kind: spark.DataType) -> bool:
    """Whether a list or a map is in it: Spark's own writer never writes the ids of their elements."""
    if isinstance(kind, spark.StructType):
        return any(has_collections(field.dataType) for field in kind.fields)
    return isinstance(kind, spark.ArrayType | spark.MapType)
