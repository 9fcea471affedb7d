"""Which table a name in a statement means."""

from __future__ import annotations

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.catalogs import CATALOG_NAME
from lakeproof.iceberg.tables import table_exists
from lakeproof.iceberg.types import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.gateway import CATALYST

_CATALOGS = ("spark_catalog", CATALOG_NAME)


def qualified(engine: Engine, name: str) -> str:
    """`namespace.table`; a bare name is in the session's current database."""
    parts = [part.strip("`") for part in name.split(".")]
    if len(parts) > 2 and parts[0].lower() in _CATALOGS:
        parts = parts[1:]
    if len(parts) == 1:
        parts = [engine.gateway.spark.catalog.currentDatabase(), *parts]
    return spelled(engine, ".".join(parts))


def spelled(engine: Engine, name: str) -> str:
    """A name as the catalog has it: as it was written, else in lower case, in which Spark makes its tables."""
    if name == name.lower() or table_exists(engine.catalog, name):
        return name
    case_sensitive = str(engine.gateway.spark.conf.get("spark.sql.caseSensitive")).lower() == "true"
    return name if case_sensitive else name.lower()


def managed(engine: Engine, name: str) -> Table | None:
    """The managed table that a name means, or `None`."""
    return engine.find(qualified(engine, name)) if "`" not in name else None


def is_known(engine: Engine, name: str) -> bool:
    """Whether the name means a managed table, be its metadata readable or not."""
    return "`" not in name and table_exists(engine.catalog, qualified(engine, name))


def spark_has(engine: Engine, name: str) -> bool:
    """Whether Spark itself has a table or view of that name."""
    namespace, _, table = qualified(engine, name).rpartition(".")
    gateway = engine.gateway
    identifier = gateway.named(f"{CATALYST}TableIdentifier").apply(table, gateway.some(namespace))
    catalog = gateway.session.sessionState().catalog()
    return bool(catalog.databaseExists(namespace) and catalog.tableExists(identifier))


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
