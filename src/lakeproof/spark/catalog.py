"""Spark's session catalog, extended in Python: managed tables are found here, everything else stays Spark's own.

Spark asks this object for every name that a query or a writer mentions. What it does not know as managed it hands to
the session catalog that was there before, so that Spark's own tables, views and functions work as they did.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.metadata_tables.metadata_tables import METADATA_TABLES
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.lru import Recent
from lakeproof.iceberg.tables.branches import TableAt
from lakeproof.iceberg.tables.evolution import alter_properties
from lakeproof.iceberg.tables.metadata_views import view
from lakeproof.iceberg.tables.tables import (
    create_namespace,
    create_table,
    drop_namespace,
    drop_table,
    joined_name,
    list_namespaces,
    list_tables,
    name_parts,
    rename_table,
    table_exists,
)
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.default_values import CURRENT
from lakeproof.spark.jvm.gateway import JavaProxy, from_java
from lakeproof.spark.jvm.spark_types import to_iceberg_schema
from lakeproof.spark.jvm.versions import WantedTable, wanted_table
from lakeproof.spark.names_in_force import Names, names_in_force
from lakeproof.spark.reading.asked_columns import TableWithMetadataColumns
from lakeproof.spark.reading.functions import NAMES, SYSTEM
from lakeproof.spark.reading.metadata_rows import metadata_rows
from lakeproof.spark.reading.scan import described_table
from lakeproof.spark.statements.names import (
    UNIQUE,
    NamedMetadata,
    managed,
    named_metadata,
    names_a_version,
    qualified,
    spelled,
)
from lakeproof.spark.statements.options import refuse_two_versions
from lakeproof.spark.statements.table_options import DEPENDENCIES, is_managed, lowered, partition_by, table_properties
from lakeproof.spark.writing.writable import WritableTable

SESSION_CATALOG = "spark_catalog"


def install_catalog(engine: Engine) -> SessionCatalog:
    """The session asks Python for its tables from now on; a session that already does keeps one catalog."""
    gateway = engine.gateway
    manager = gateway.session.sessionState().catalogManager()
    extended = SessionCatalog(engine, gateway.hidden_field(manager, spark41.SESSION_CATALOG))
    gateway.hidden_field(manager, spark41.CATALOGS).put(SESSION_CATALOG, extended)
    gateway.spark.conf.set(f"spark.sql.catalog.{SESSION_CATALOG}", "lakeproof")
    for namespace in list_namespaces(engine.catalog):  # so that USE finds those that other processes made
        if "." not in namespace and not extended.delegate.namespaceExists(gateway.strings([namespace])):
            extended.delegate.createNamespace(gateway.strings([namespace]), gateway.jvm.java.util.HashMap())
    return extended


class _Readable(NamedTuple):
    """A table as Spark finds it: the plan under its qualified name, and what stands for it until then."""

    rows: DataFrame  # held, so that no other scan can have its identity
    name: Any
    plan: Any
    table: Any


class SessionCatalog(JavaProxy):
    """What Spark calls `spark_catalog`."""

    def __init__(self, engine: Engine, delegate: Any) -> None:
        super().__init__(engine.gateway)
        self.connected, self.delegate = engine, delegate
        self._readables: Recent[_Readable] = Recent(256)

    @property
    def engine(self) -> Engine:
        """Whose tables a name means: the statement's own lake, else the one that was connected last."""
        names = names_in_force(self.gateway)
        return self.connected if names is None else names.engine

    def __getattr__(self, name: str) -> Any:
        """Whatever is not about managed tables is Spark's own business."""
        if name.startswith("_") or name in ("gateway", "delegate", "connected"):
            raise AttributeError(name)
        return _delegated(name).__get__(self)

    def name(self) -> str:
        """Always this."""
        return SESSION_CATALOG

    def initialize(self, name: str, options: Any) -> None:
        """Nothing to do."""

    def setDelegateCatalog(self, delegate: Any) -> None:
        """Given at the start."""

    def toString(self) -> str:
        """What Java prints."""
        return "lakeproof session catalog"

    @from_java
    def loadTable(self, identifier: Any, *how: Any) -> Any:
        """A managed table to read or to write, a view of its metadata, or a table of Spark's own."""
        names = names_in_force(self.gateway) or Names(self.connected, {}, None)
        engine = names.engine
        base, dollar, wanted = _dotted(identifier).partition("$")
        name = qualified(engine, base) if names_a_version(base) else spelled(engine, base)
        table = names.pinned.get(name) or engine.find(name)
        if table is None:
            found = None if dollar else named_metadata(engine, base)
            if found is None:
                return self._theirs(engine, identifier, base, how)
            return self._metadata(identifier, found, wanted_table(how), names)
        wish = wanted_table(how)
        if isinstance(table, TableAt) and (wish.version is not None or wish.micros is not None):
            refuse_two_versions(table, f"table {name}")
        table = table if dollar or name in names.pinned else engine.session_table(table)
        if dollar:
            rows = self._view(table, wanted)
            return self._kept(self._readable(identifier, f"{name}{dollar}{wanted}", rows))
        if wish.rights is not None:
            _refuse_row_level(wish.rights, name)
            return WritableTable(engine, table)
        if wish.version is not None:
            scan = engine.scan(table, version=wish.version)
        else:
            scan = engine.scan(table, timestamp_ms=names.as_of_ms if wish.micros is None else wish.micros // 1000)
        if names.noted is not None:
            noted = TableWithMetadataColumns(engine, table, scan)
            names.noted[noted.toString()] = noted
            return noted
        key, rows = scan.source.key, scan.rows
        # A scan that was made anew is another plan, even under the same key.
        return self._kept(
            self._readables.get(f"{base} {id(rows)} {key}", lambda: self._readable(identifier, key, rows))
        )

    def _theirs(self, engine: Engine, identifier: Any, name: str, how: tuple[Any, ...]) -> Any:
        """A table of Spark's own, whose names have two parts; of a longer name Spark says that it finds nothing."""
        *before, last = name_parts(name)
        if len(before) < 2:
            return self.delegate.loadTable(identifier, *how)
        if managed(engine, joined_name(before)) is not None:
            hint = f"known are {', '.join(sorted(METADATA_TABLES))}, branch_NAME and tag_NAME"
            raise InvalidInput(f"there is no metadata table `{last}`", place=f"table {name}", hint=hint)
        missing = self.gateway.answers.last = self.gateway.named(spark41.NO_SUCH_TABLE)(identifier)
        raise Py4JJavaError(f"there is no table {name}", missing)

    def _metadata(self, identifier: Any, found: NamedMetadata, wish: WantedTable, names: Names) -> Any:
        """A metadata table, at the version or instant that is wished for."""
        name = f"{'.'.join(found.table.name())}.{found.name}"
        if wish.rights is not None:
            raise InvalidInput("a metadata table cannot be written", place=f"table {name}")
        at_ms = names.as_of_ms if wish.micros is None else wish.micros // 1000
        rows = metadata_rows(names.engine, found.table, found.name, version=wish.version, timestamp_ms=at_ms)
        return self._kept(self._readable(identifier, name, rows))

    def _name(self, identifier: Any) -> str:
        return spelled(self.engine, _dotted(identifier))

    def _view(self, table: Table, name: str) -> DataFrame:
        return self.gateway.spark.createDataFrame(view(table, name))

    def _readable(self, identifier: Any, key: str, rows: DataFrame) -> _Readable:
        """Spark resolves the table to a plan of its own that we put where it looks for relations.

        What tells snapshots apart stands in the place of the catalog's name: Spark calls the relation
        `spark_catalog.namespace.table` whatever that is, so that `t.id` and `namespace.t.id` mean its columns.
        """
        plan = spark41.execution_of(rows).analyzed()
        namespace, name, unique = identifier.namespace()[-1], identifier.name(), f"{UNIQUE}{key}"
        known = self.gateway.named(spark41.QUALIFIED_TABLE_NAME).apply(unique, namespace, name)
        at = self.gateway.named(spark41.TABLE_IDENTIFIER).apply(
            name, self.gateway.some(namespace), self.gateway.some(unique)
        )
        described = described_table(self.gateway, at, plan.schema(), self.gateway.none)
        return _Readable(rows, known, plan, self.gateway.named(spark41.V1_TABLE)(described))

    def _kept(self, readable: _Readable) -> Any:
        """The plan is where Spark will look for it; it may have been thrown out since the last time."""
        self.gateway.session_catalog.cacheTable(readable.name, readable.plan)
        return readable.table

    @from_java
    def tableExists(self, identifier: Any) -> bool:
        """Whether anybody knows the name."""
        ours = table_exists(self.engine.catalog, self._name(identifier))
        return ours or bool(self.delegate.tableExists(identifier))

    @from_java
    def listTables(self, namespace: Any) -> Any:
        """Managed tables and Spark's own, sorted."""
        ours = _tables(self.engine, ".".join(namespace))
        theirs = list(self.delegate.listTables(namespace)) if self.delegate.namespaceExists(namespace) else []
        kind = self.gateway.named(spark41.IDENTIFIER)
        known = {found.name() for found in theirs}
        added = [kind.of(namespace, name) for name in ours if name not in known]
        return self.gateway.array(spark41.IDENTIFIER, sorted([*theirs, *added], key=lambda found: str(found.name())))

    @from_java
    def createTable(self, identifier: Any, *described: Any) -> Any:
        """`using iceberg` makes a managed table; the rest is Spark's."""
        info = described[0]
        properties = dict(info.properties()) if len(described) == 1 else dict(described[-1])
        if not is_managed(properties.get("provider", ""), properties):
            return self.delegate.createTable(identifier, *described)
        columns, parts = (info.columns(), info.partitions()) if len(described) == 1 else described[:2]
        if len(described) == 1:
            columns = self.gateway.named(spark41.CATALOG_V2_UTIL).v2ColumnsToStructType(columns)
        table = self._create(self._name(identifier), columns, parts, properties)
        return WritableTable(self.engine, table)

    def _create(self, name: str, schema: Any, parts: Any, properties: dict[str, str]) -> Table:
        columns = StructType.fromJson(json.loads(schema.json()))
        with_default = next((field.name for field in columns.fields if CURRENT in field.metadata), None)
        if with_default is not None:
            hint = "make the table by lake.sql: CREATE TABLE … (column type DEFAULT value)"
            raise InvalidInput(
                f"the default of `{with_default}` cannot come this way", place=f"table {name}", hint=hint
            )
        return create_table(
            self.engine.catalog,
            name,
            to_iceberg_schema(columns),
            partition_by=[partition_by(part) for part in parts],
            properties=table_properties(properties),
            location=properties.get("location") or properties.get("path"),
            column_dependencies=lowered(properties).get(DEPENDENCIES, ""),
        )

    @from_java
    def dropTable(self, identifier: Any) -> bool:
        """The table leaves its catalog."""
        return self._dropped(identifier, purge=False)

    @from_java
    def purgeTable(self, identifier: Any) -> bool:
        """The table and its files are gone."""
        return self._dropped(identifier, purge=True)

    def _dropped(self, identifier: Any, *, purge: bool) -> bool:
        if self.engine.find(self._name(identifier)) is None:
            return bool((self.delegate.purgeTable if purge else self.delegate.dropTable)(identifier))
        drop_table(self.engine.catalog, self._name(identifier), purge=purge)
        return True

    @from_java
    def alterTable(self, identifier: Any, changes: Any) -> Any:
        """Properties change (COMMENT ON TABLE comes this way); the rest is altered by the statement's text."""
        table = self.engine.find(self._name(identifier))
        if table is None:
            return self.delegate.alterTable(identifier, changes)
        for change in changes:
            kind = change.getClass().getSimpleName()
            if kind == "SetProperty":
                alter_properties(table, {change.property(): change.value()})
            elif kind == "RemoveProperty":
                alter_properties(table, remove=[change.property()])
            else:
                raise InvalidInput("a managed table cannot be altered this way", hint="use lake.sql with ALTER TABLE")
        return WritableTable(self.engine, self.engine.load(self._name(identifier)))

    @from_java
    def renameTable(self, identifier: Any, new: Any) -> None:
        """The table has another name."""
        if self.engine.find(self._name(identifier)) is None:
            self.delegate.renameTable(identifier, new)
        else:
            rename_table(self.engine.catalog, self._name(identifier), self._name(new))

    @from_java
    def listNamespaces(self, *parent: Any) -> Any:
        """Everybody's namespaces."""
        theirs = [".".join(each) for each in self.delegate.listNamespaces(*parent)]
        ours = [each for each in list_namespaces(self.engine.catalog) if not parent or not list(parent[0])]
        names = sorted({*theirs, *(each for each in ours if "." not in each)})
        kind = self.gateway.class_of("[[Ljava.lang.String;")
        return self.gateway.built(json.dumps([[each] for each in names]), kind)

    @from_java
    def namespaceExists(self, namespace: Any) -> bool:
        """Whether anybody knows the namespace."""
        return bool(self.delegate.namespaceExists(namespace)) or ".".join(namespace) in list_namespaces(
            self.engine.catalog
        )

    @from_java
    def functionExists(self, identifier: Any) -> bool:
        """Iceberg's functions are in the namespace `system`, whichever is the current one."""
        ours = list(identifier.namespace()) == [SYSTEM] and str(identifier.name()).lower() in NAMES
        return ours or bool(self.delegate.functionExists(identifier))

    @from_java
    def loadNamespaceMetadata(self, namespace: Any) -> Any:
        """What Spark knows of a namespace, and the folder in which its managed tables lie."""
        known = dict(self.delegate.loadNamespaceMetadata(namespace))
        name, warehouse = ".".join(namespace), self.engine.catalog.properties.get("warehouse")
        if warehouse is not None and name in list_namespaces(self.engine.catalog):
            known["location"] = f"{warehouse.rstrip('/')}/{name}"
        told = {key: value for key, value in known.items() if (key, value) != ("comment", "")}
        return self.gateway.built(json.dumps(told), self.gateway.class_of("java.util.HashMap"))

    @from_java
    def createNamespace(self, namespace: Any, properties: Any) -> None:
        """Both catalogs know it, so that managed tables can be made in it."""
        _refuse_location(namespace, dict(properties))
        self.delegate.createNamespace(namespace, properties)
        create_namespace(self.engine.catalog, ".".join(namespace), if_not_exists=True)

    @from_java
    def alterNamespace(self, namespace: Any, changes: Any) -> None:
        """Spark keeps what is said of a namespace."""
        told = [str(change.property()) for change in changes]
        _refuse_location(namespace, told)
        self.delegate.alterNamespace(namespace, changes)

    @from_java
    def dropNamespace(self, namespace: Any, cascade: bool) -> bool:
        """Both catalogs forget it; ours refuses first, so that nothing is half done."""
        name = ".".join(namespace)
        known = name in list_namespaces(self.engine.catalog)
        if known:
            drop_namespace(self.engine.catalog, name, cascade=cascade)
        theirs = bool(self.delegate.namespaceExists(namespace)) and self.delegate.dropNamespace(namespace, cascade)
        return known or bool(theirs)

    class Java:
        """What py4j reads."""

        implements = [spark41.CATALOG_EXTENSION]  # noqa: RUF012


def _delegated(name: str) -> Any:
    @from_java
    def method(self: SessionCatalog, *arguments: Any) -> Any:
        return getattr(self.delegate, name)(*arguments)

    return method


def _refuse_location(namespace: Any, properties: Iterable[str]) -> None:
    if "location" in properties:
        raise InvalidInput(
            "a namespace has no folder of its own: its tables lie in the warehouse",
            place=f"namespace {'.'.join(namespace)}",
            hint="say LOCATION in CREATE TABLE",
        )


def _refuse_row_level(privileges: Any, name: str) -> None:
    asked = set(str(privileges.toString()).strip("[]").split(", "))
    if "INSERT" not in asked:
        raise InvalidInput(
            f"{' and '.join(sorted(asked))} on the managed table `{name}` cannot come this way",
            hint="use lake.sql for UPDATE, DELETE and MERGE",
        )


def _tables(engine: Engine, namespace: str) -> tuple[str, ...]:
    return list_tables(engine.catalog, namespace) if namespace in list_namespaces(engine.catalog) else ()


def _dotted(identifier: Any) -> str:
    told = str(identifier.toString())
    if "`" not in told:  # nothing is quoted in it, and one call has told it all
        return told
    return joined_name([*identifier.namespace(), identifier.name()])
