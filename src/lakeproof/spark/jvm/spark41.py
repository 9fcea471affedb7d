"""Everything private that is used of Spark from 4.1 on: names of classes, arguments, hidden fields, attributes.

None of it is promised by Spark. What is not the same in 4.2 and 4.3 stands in `versions.py`. `find_missing` says at the
start what a session lacks, by name, before a statement stumbles over it. What PySpark documents is not listed here.
"""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import utils as error_utils
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.merge import MergeIntoWriter
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.readwriter import DataFrameWriterV2
from pyspark.sql.sql_formatter import SQLStringFormatter
from pyspark.sql.streaming import DataStreamReader, DataStreamWriter, StreamingQuery
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from lakeproof.spark.jvm.versions import catalog_table_fields

__all__ = [
    "CapturedException",
    "DataFrameWriterV2",
    "DataStreamReader",
    "DataStreamWriter",
    "MergeIntoWriter",
    "PythonEvalType",
    "SQLStringFormatter",
    "StreamingQuery",
    "UserDefinedFunction",
    "to_arrow_schema",
]

# ---------------------------------------------------------------- classes of the JVM

_CATALYST = "org.apache.spark.sql.catalyst."
_CONNECTOR = "org.apache.spark.sql.connector."
_SOURCES = "org.apache.spark.sql.execution.datasources."
PYTHON_UTILS = "org.apache.spark.api.python.PythonUtils"
ROW_FACTORY = "org.apache.spark.sql.RowFactory"
PARTIAL_FUNCTION, FUNCTION = "scala.PartialFunction", "scala.Function1"
WRITABLE_COMPARATOR = "org.apache.hadoop.io.WritableComparator"
DATASET = "org.apache.spark.sql.classic.Dataset"
EXPRESSION_UTILS = "org.apache.spark.sql.classic.ExpressionUtils"
SPARK_SESSION = "org.apache.spark.sql.classic.SparkSession"
EXPLAIN_MODE = "org.apache.spark.sql.execution.ExplainMode"
IN_MEMORY_RELATION = "org.apache.spark.sql.execution.columnar.InMemoryRelation"
MANIFEST_FILE_COMMIT_PROTOCOL = "org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol"
FILE_STREAM_SINK_LOG = "org.apache.spark.sql.execution.streaming.sinks.FileStreamSinkLog"
STREAM_SOURCE = "org.apache.spark.sql.execution.streaming.Source"
SERIALIZED_OFFSET = "org.apache.spark.sql.execution.streaming.runtime.SerializedOffset"
STREAMING_EXECUTION_RELATION = "org.apache.spark.sql.execution.streaming.runtime.StreamingExecutionRelation"
INSERTABLE_RELATION = "org.apache.spark.sql.sources.InsertableRelation"
DATA_TYPE = "org.apache.spark.sql.types.DataType"
DATA_TYPES = "org.apache.spark.sql.types.DataTypes"
METADATA = "org.apache.spark.sql.types.Metadata"
STRUCT_TYPE = "org.apache.spark.sql.types.StructType"
MURMUR3 = "org.apache.spark.unsafe.hash.Murmur3_x86_32"
UTF8_STRING = "org.apache.spark.unsafe.types.UTF8String"
INTERNAL_ROW = f"{_CATALYST}InternalRow"
FUNCTION_IDENTIFIER = f"{_CATALYST}FunctionIdentifier"
QUALIFIED_TABLE_NAME = f"{_CATALYST}QualifiedTableName"
TABLE_IDENTIFIER = f"{_CATALYST}TableIdentifier"
NO_SUCH_TABLE = f"{_CATALYST}analysis.NoSuchTableException"
ASSIGNMENT_UTILS = f"{_CATALYST}analysis.AssignmentUtils"
CATALOG_STATISTICS = f"{_CATALYST}catalog.CatalogStatistics"
CATALOG_STORAGE_FORMAT = f"{_CATALYST}catalog.CatalogStorageFormat"
CATALOG_TABLE = f"{_CATALYST}catalog.CatalogTable"
CATALOG_TABLE_PARTITION = f"{_CATALYST}catalog.CatalogTablePartition"
CATALOG_TABLE_TYPE = f"{_CATALYST}catalog.CatalogTableType"
ALIAS = f"{_CATALYST}expressions.Alias"
BASE_PREDICATE = f"{_CATALYST}expressions.BasePredicate"
BIND_REFERENCES = f"{_CATALYST}expressions.BindReferences"
BLOOM_FILTER_MIGHT_CONTAIN = f"{_CATALYST}expressions.BloomFilterMightContain"
CAST = f"{_CATALYST}expressions.Cast"
CREATE_ARRAY = f"{_CATALYST}expressions.CreateArray"
LITERAL = f"{_CATALYST}expressions.Literal"
FUNCTIONS = "org.apache.spark.sql.functions"
GENERIC_INTERNAL_ROW = f"{_CATALYST}expressions.GenericInternalRow"
PREDICATE = f"{_CATALYST}expressions.Predicate"
SUBQUERY_EXPRESSION = f"{_CATALYST}expressions.SubqueryExpression"
BLOOM_FILTER_AGGREGATE = f"{_CATALYST}expressions.aggregate.BloomFilterAggregate"
STATIC_INVOKE = f"{_CATALYST}expressions.objects.StaticInvoke"
EXPRESSION_INFO = f"{_CATALYST}expressions.ExpressionInfo"
EXPRESSIONS_PACKAGE = f"{_CATALYST}expressions.package"
CONSTANT_FOLDING = f"{_CATALYST}optimizer.ConstantFolding"
NAMED_PARAMETER_CONTEXT = f"{_CATALYST}parser.NamedParameterContext"
POSITIONAL_PARAMETER_CONTEXT = f"{_CATALYST}parser.PositionalParameterContext"
ASSIGNMENT = f"{_CATALYST}plans.logical.Assignment"
FILTER = f"{_CATALYST}plans.logical.Filter"
LOCAL_RELATION = f"{_CATALYST}plans.logical.LocalRelation"
PROJECT = f"{_CATALYST}plans.logical.Project"
SUBQUERY_ALIAS = f"{_CATALYST}plans.logical.SubqueryAlias"
DATE_TIME_UTILS = f"{_CATALYST}util.DateTimeUtils"
CATALOG_EXTENSION = f"{_CONNECTOR}catalog.CatalogExtension"
CATALOG_V2_UTIL = f"{_CONNECTOR}catalog.CatalogV2Util"
IDENTIFIER = f"{_CONNECTOR}catalog.Identifier"
METADATA_COLUMN = f"{_CONNECTOR}catalog.MetadataColumn"
SUPPORTS_METADATA_COLUMNS = f"{_CONNECTOR}catalog.SupportsMetadataColumns"
SUPPORTS_READ = f"{_CONNECTOR}catalog.SupportsRead"
SUPPORTS_WRITE = f"{_CONNECTOR}catalog.SupportsWrite"
TABLE_CAPABILITY = f"{_CONNECTOR}catalog.TableCapability"
V1_TABLE = f"{_CONNECTOR}catalog.V1Table"
CONSTRAINT = f"{_CONNECTOR}catalog.constraints.Constraint"
CONNECTOR_EXPRESSION = f"{_CONNECTOR}expressions.Expression"
CONNECTOR_EXPRESSIONS = f"{_CONNECTOR}expressions.Expressions"
TRANSFORM = f"{_CONNECTOR}expressions.Transform"
CUSTOM_METRIC = f"{_CONNECTOR}metric.CustomMetric"
CUSTOM_TASK_METRIC = f"{_CONNECTOR}metric.CustomTaskMetric"
READ_LIMIT = f"{_CONNECTOR}read.streaming.ReadLimit"
SUPPORTS_TRIGGER_AVAILABLE_NOW = f"{_CONNECTOR}read.streaming.SupportsTriggerAvailableNow"
SUPPORTS_DYNAMIC_OVERWRITE = f"{_CONNECTOR}write.SupportsDynamicOverwrite"
SUPPORTS_OVERWRITE_V2 = f"{_CONNECTOR}write.SupportsOverwriteV2"
V1_WRITE = f"{_CONNECTOR}write.V1Write"
DATA_SOURCE = f"{_SOURCES}DataSource"
FILE_FORMAT_WRITER = f"{_SOURCES}FileFormatWriter"
FILE_FORMAT_WRITER_OUTPUT_SPEC = f"{_SOURCES}FileFormatWriter$OutputSpec"
FILE_INDEX = f"{_SOURCES}FileIndex"
HADOOP_FS_RELATION = f"{_SOURCES}HadoopFsRelation"
LOGICAL_RELATION = f"{_SOURCES}LogicalRelation"
PARTITION_DIRECTORY = f"{_SOURCES}PartitionDirectory"
PARQUET_FILE_FORMAT = f"{_SOURCES}parquet.ParquetFileFormat"
ORC_FILE_FORMAT = f"{_SOURCES}orc.OrcFileFormat"
FILE_FORMATS = {"PARQUET": PARQUET_FILE_FORMAT, "ORC": ORC_FILE_FORMAT}

CLASSES = tuple(
    sorted({value for name, value in globals().items() if name[0] != "_" and str(value).startswith("org.apache.")})
)
"""Every class that is named above."""

# ---------------------------------------------------------------- arguments of case classes, in order

CATALOG_TABLE_FIELDS = catalog_table_fields()
CATALOG_PARTITION_FIELDS = ("spec", "storage", "parameters", "createTime", "lastAccessTime", "stats")
ARGUMENTS = {(CATALOG_TABLE_PARTITION, "copy"): 6, (FILE_FORMAT_WRITER, "write"): 12, (STATIC_INVOKE, "copy"): 9}
ARGUMENTS |= {(ALIAS, "copy"): 6, (HADOOP_FS_RELATION, "copy"): 7, (LOGICAL_RELATION, "copy"): 5}
ARGUMENTS |= {(f"{STREAMING_EXECUTION_RELATION}$", "apply"): 2}
"""How many arguments these have, wherever Lakeproof makes or calls them: an unknown version is asked for it."""


def case_class(gateway: Any, name: str, fields: Sequence[str], **given: Any) -> Any:
    """An object of a case class: the fields that are given, and Spark's own defaults for the rest."""
    kind = gateway.named(name)
    rest = {field: number for number, field in enumerate(fields, 1) if field not in given}
    filled = gateway.once(f"{name} without {sorted(given)}", lambda: defaults(kind, "apply", rest.values()))
    values = {**dict(zip(rest, filled, strict=True)), **given}
    return gateway.static(name, "apply")(*[values[field] for field in fields])


def copied(item: Any, fields: Sequence[str], **changed: Any) -> Any:
    """The same object of a case class with these fields changed."""
    numbers = range(1, len(fields) + 1)
    kept = dict(zip(fields, defaults(item, "copy", numbers), strict=True))
    return item.copy(*({**kept, **changed}[field] for field in fields))


def defaults(owner: Any, method: str, numbers: Iterable[int], *before: Any) -> list[Any]:
    """Scala's default arguments of a method, by their numbers; `before` are those that they are computed from."""
    return [getattr(owner, f"{method}$default${number}")(*before) for number in numbers]


# ---------------------------------------------------------------- hidden fields of JVM objects

SESSION_CATALOG, CATALOGS = "defaultSessionCatalog", "catalogs"  # of the CatalogManager
CACHED_DATA = "cachedData"  # of the CacheManager
WRITER_PROVIDER, WRITER_PROPERTIES, WRITER_OPTIONS = "provider", "properties", "options"  # of a DataFrameWriterV2
WRITER_PARTITIONING, WRITER_CLUSTERING = "partitioning", "clustering"
OLD_WRITER_OPTIONS, WRITER_SOURCE = "extraOptions", "source"  # of a DataFrameWriter, the first also of a reader
WRITER_PARTITION_COLUMNS, WRITER_BUCKETS, WRITER_SORTING = "partitioningColumns", "numBuckets", "sortColumnNames"
STREAM_SCHEMA, OUTPUT_MODE = "userSpecifiedSchema", "outputMode"  # of a DataStreamReader, of a DataStreamWriter
STREAM_CLUSTERING = "clusteringColumns"  # also of a DataFrameWriter

RUN_OF_THREAD = "spark.jobGroup.id"  # the local property by which the thread of a stream tells the run of its query
QUERY_OF_THREAD = "sql.streaming.queryId"  # and its query

ROW_INDEX = "_tmp_metadata_row_index"
"""The column that Spark's Parquet reader fills with the number of each row in its file."""

# ---------------------------------------------------------------- private attributes of PySpark


class _Own(threading.local):
    """Whether this thread runs code of ours, and not the user's."""

    depth = 0


_own = _Own()
_tells_origins = error_utils.is_debugging_enabled


def _tells_origin() -> bool:
    return not _own.depth and bool(_tells_origins())


@contextmanager
def without_origins() -> Iterator[None]:
    """Columns that are made inside do not say where in Python they were made.

    PySpark asks the JVM ten times for each function and method of a column, so that an error can name the user's own
    line; inside a statement of ours there is none.
    """
    error_utils.is_debugging_enabled = _tells_origin
    _own.depth += 1
    try:
        yield
    finally:
        _own.depth -= 1


def active_context() -> Any:
    """The context of this process; `None`: there is none yet."""
    return SparkContext._active_spark_context


def java_session(spark: SparkSession) -> Any:
    """The session as the JVM holds it."""
    return spark._jsparkSession


def java_machine(spark: SparkSession) -> Any:
    """The JVM, in which a class is an attribute."""
    return spark.sparkContext._jvm


def java_gateway(spark: SparkSession) -> Any:
    """py4j's way to the JVM."""
    return spark.sparkContext._gateway


def let_java_call(spark: SparkSession) -> None:
    """Java may call Python, and a callback may throw the Java exception that Spark expects (NoSuchTableException)."""
    ensure_callback_server_started(java_gateway(spark))
    java_gateway(spark).python_parameters.propagate_java_exceptions = True


CALLBACK_CLIENT, CALLBACK_CONNECTIONS, CALLBACK_LOCK = "py4j.CallbackClient", "connections", "lock"


def callback_connection(spark: SparkSession) -> Any:
    """py4j's connection of this thread, if Java opened it to call Python; `None`: Python did."""
    found = java_gateway(spark)._gateway_client.get_thread_connection()
    return None if found is None or found.initiated_from_client else found


def callback_client(spark: SparkSession) -> Any:
    """Java's end of all calls of Python."""
    return java_gateway(spark).java_gateway_server.getCallbackClient()


def java_frame(rows: DataFrame) -> Any:
    """A DataFrame as the JVM holds it."""
    return rows._jdf


def execution_of(rows: DataFrame) -> Any:
    """The plans of a DataFrame: analyzed, optimized, executed."""
    return rows._jdf.queryExecution()


def java_column(column: Column) -> Any:
    """A Column as the JVM holds it."""
    return column._jc


def session_of(reader_or_writer: Any) -> SparkSession:
    """The session that a reader or writer belongs to."""
    found: SparkSession = reader_or_writer._spark
    return found


def frame_of(writer: Any) -> DataFrame:
    """What a writer writes."""
    return writer._df


def java_writer(writer: Any) -> Any:
    """A writer as the JVM holds it."""
    return writer._jwrite if hasattr(writer, "_jwrite") else writer._jwriter


def java_reader(reader: Any) -> Any:
    """A reader as the JVM holds it."""
    return reader._jreader


def java_exception(error: BaseException) -> Any:
    """The Java exception inside an error of py4j or of PySpark; `None`: there is none."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


# ---------------------------------------------------------------- what is missing


def find_missing(gateway: Any) -> list[str]:
    """The classes above that this session's JVM does not have; all are asked for in one call."""
    try:
        gateway.mapper.readValue(json.dumps(CLASSES), gateway.class_of("[Ljava.lang.Class;"))
    except Py4JError:
        return [name for name in CLASSES if not _has_class(gateway, name)]
    return []


def _has_class(gateway: Any, name: str) -> bool:
    try:
        return gateway.jvm.java.lang.Class.forName(name) is not None
    except Py4JError:
        return False


def find_missing_in_jars(folder: Path | None = None) -> list[str]:
    """The same of the jars of the installed PySpark, without starting it."""
    jars = (folder or Path(pyspark.__file__).parent / "jars").glob("*.jar")
    wanted = {f"{name.replace('.', '/')}.class": name for name in CLASSES}
    for jar in jars:
        if jar.name.startswith(("spark-", "hadoop-")):
            with zipfile.ZipFile(jar) as listed:
                for entry in listed.namelist():
                    wanted.pop(entry, None)
    return sorted(wanted.values())
