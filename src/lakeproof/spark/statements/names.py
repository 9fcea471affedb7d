"""Which table a name in a statement means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.metadata_tables.metadata_tables import METADATA_TABLES
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.catalogs import CATALOG_NAME
from lakeproof.iceberg.tables.tables import joined_name, name_parts, table_exists
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41

_CATALOGS = ("spark_catalog", CATALOG_NAME)
_VERSIONS = ("branch_", "tag_", "snapshot_id_", "at_timestamp_")
UNIQUE = "lakeproof scan "  # what stands for the catalog in the name of a relation at one snapshot


def qualified(engine: Engine, name: str) -> str:
    """`namespace.table`; a bare name is in the session's current database."""
    return qualified_parts(engine, name_parts(name))


def qualified_parts(engine: Engine, parts: Sequence[str]) -> str:
    """The same of a name's parts, as they are without quotes."""
    if len(parts) > 2 and parts[0].lower() in _CATALOGS:
        parts = parts[1:]
    if len(parts) == 1 or (len(parts) == 2 and is_version_of(engine, parts)):
        parts = [engine.gateway.spark.catalog.currentDatabase(), *parts]
    return spelled(engine, joined_name(parts))


def is_version_of(engine: Engine, parts: Sequence[str]) -> bool:
    """Whether `t.branch_b` means a version of the table `t` of the current database, and no table in a database `t`."""
    if not parts[-1].lower().startswith(_VERSIONS) or table_exists(engine.catalog, joined_name(parts)):
        return False
    database = engine.gateway.spark.catalog.currentDatabase()
    return table_exists(engine.catalog, joined_name([database, *parts[:-1]]))


def spelled(engine: Engine, name: str) -> str:
    """A name as the catalog has it: as it was written, else in lower case, in which Spark makes its tables."""
    if name == name.lower() or table_exists(engine.catalog, name):
        return name
    case_sensitive = str(engine.gateway.spark.conf.get("spark.sql.caseSensitive")).lower() == "true"
    return name if case_sensitive else name.lower()


def names_a_version(name: str) -> bool:
    """Whether the last part of a dotted name may be a branch, a tag, a snapshot or an instant."""
    return "." in name and name_parts(name)[-1].lower().startswith(_VERSIONS)


class NamedMetadata(NamedTuple):
    """A metadata table: of which table, and which one."""

    table: Table
    name: str


def named_metadata(engine: Engine, name: str) -> NamedMetadata | None:
    """The metadata table that a dotted name means (`t.files`, `namespace.t.files`); a table of that name goes first."""
    *before, last = name_parts(name)
    if not before or last.lower() not in METADATA_TABLES or managed(engine, name) is not None:
        return None
    table = managed(engine, joined_name(before))
    return None if table is None else NamedMetadata(table, last.lower())


def managed(engine: Engine, name: str) -> Table | None:
    """The managed table that a name means, or `None`."""
    return engine.find(qualified(engine, name))


def managed_target(engine: Engine, parts: Sequence[str]) -> str | None:
    """The qualified name of the managed table that a statement writes; `None`: it is none, or a view hides it."""
    if len(parts) == 1 and engine.gateway.session_catalog.getTempView(parts[0]).isDefined():
        return None
    name = qualified_parts(engine, parts)
    return name if engine.find(name) is not None else None


def is_managed_name(engine: Engine, name: str) -> bool:
    """Whether the name means a managed table, be its metadata readable or not."""
    return table_exists(engine.catalog, qualified(engine, name))


def under_its_name(engine: Engine, table: Table, rows: DataFrame) -> DataFrame:
    """A scan of the table whose columns can be called `t.id`, `namespace.t.id` or `spark_catalog.namespace.t.id`."""
    *namespace, name = table.name()
    gateway = engine.gateway
    alias = gateway.module(spark41.SUBQUERY_ALIAS)
    parts = gateway.sequence(["spark_catalog", ".".join(namespace), name])
    return gateway.dataframe(alias.apply(parts, spark41.execution_of(rows).analyzed()))


def spark_has(engine: Engine, name: str) -> bool:
    """Whether Spark itself has a table or view of that name."""
    *before, table = name_parts(qualified(engine, name))
    namespace = ".".join(before)
    gateway = engine.gateway
    identifier = gateway.named(spark41.TABLE_IDENTIFIER).apply(table, gateway.some(namespace))
    catalog = gateway.session.sessionState().catalog()
    return bool(catalog.databaseExists(namespace) and catalog.tableExists(identifier))


def refuse_unsupported(engine: Engine, error: AnalysisException) -> None:
    """A command of Spark's own does not find a managed table where Spark keeps its tables: say why."""
    if error.getCondition() == "MISSING_CATALOG_ABILITY.PROCEDURES":
        hint = "CALL system.name(…) calls ours; the reference of SQL lists them"
        raise InvalidInput(
            "Spark's session catalog has no procedures, and no catalog has this one", hint=hint
        ) from None
    if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return
    *before, name = name_parts((error.getMessageParameters() or {}).get("relationName", ""))
    if any(part.startswith(UNIQUE) for part in before) or managed(engine, joined_name([*before, name])) is not None:
        raise InvalidInput(
            f"the managed table `{name}` has no such statement",
            hint="lake.sql has SHOW, DESCRIBE, ALTER, CALL system.…: see the reference of statements",
        ) from None


def refuse_stream(error: Py4JJavaError) -> None:
    """`from stream(t)`: Spark looks for the source of a stream, and finds the name of ours."""
    if "[DATA_SOURCE_NOT_FOUND]" in str(error) and "data source: lakeproof." in str(error):
        hint = "spark.readStream.table(name) is one, and can be queried as a temporary view"
        raise InvalidInput("a managed table in a query is no stream", hint=hint) from None


def refuse_managed_path(engine: Engine, path: str) -> None:
    """Spark may not write files of its own where a managed table lives: they would be neither seen nor safe."""
    if not path:
        return
    gateway = engine.gateway
    here = gateway.jvm.org.apache.hadoop.fs.Path(path)
    files = here.getFileSystem(gateway.session.sessionState().newHadoopConf())
    while here is not None and here.getName():
        found = files.globStatus(gateway.jvm.org.apache.hadoop.fs.Path(here, "metadata/*.metadata.json"))
        if found:
            raise InvalidInput(
                "a managed table lives at this path", place=path, hint="write to the table by its name, or elsewhere"
            )
        here = here.getParent()
