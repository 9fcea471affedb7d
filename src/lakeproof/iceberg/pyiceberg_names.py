"""The names of PyIceberg that the rest of the package may use."""

from pyiceberg.catalog import Catalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.sorting import SortField
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
    parse_transform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

__all__ = [
    "BinaryType",
    "BooleanType",
    "BucketTransform",
    "Catalog",
    "DataFile",
    "DataFileContent",
    "DateType",
    "DayTransform",
    "DecimalType",
    "DoubleType",
    "FileFormat",
    "FixedType",
    "FloatType",
    "HourTransform",
    "IcebergType",
    "IdentityTransform",
    "IntegerType",
    "ListType",
    "LongType",
    "ManifestContent",
    "MapType",
    "MonthTransform",
    "NestedField",
    "Operation",
    "PartitionField",
    "PartitionSpec",
    "PrimitiveType",
    "Record",
    "Schema",
    "Snapshot",
    "SortField",
    "StringType",
    "StructType",
    "Summary",
    "Table",
    "TableMetadata",
    "TimeType",
    "TimestampType",
    "TimestamptzType",
    "Transform",
    "TruncateTransform",
    "UUIDType",
    "VoidTransform",
    "YearTransform",
    "parse_transform",
]
