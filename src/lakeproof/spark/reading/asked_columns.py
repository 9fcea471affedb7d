"""Queries that name a metadata column: Spark's analyzer resolves it, and a native scan computes it.

Spark knows hidden columns of a table only where the table is one of its newer kind. So for the analysis of such a query
a managed table is one of those, which cannot be read; the analyzed plan says which metadata columns each scan is asked
for, and a native scan with just these takes its place, under the same attributes.
"""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import SEPARATOR, Gateway, JavaProxy, from_java, items_of
from lakeproof.spark.jvm.tables_for_spark import TableForSpark
from lakeproof.spark.reading.metadata_columns import METADATA_COLUMNS, metadata_columns_of, scan_with_metadata
from lakeproof.spark.reading.scan import Scan

_CAPABILITIES = '["BATCH_READ"]'
_READABLE = "readable with metadata columns"
_ATTRIBUTE = re.compile(r"(\w+)#(\d+)")


def names_metadata_column(text: str) -> bool:
    """Whether a metadata column may be meant somewhere in the text of a query."""
    return _ASKED.search(text) is not None


_ASKED = re.compile(rf"(?<![\w$])({'|'.join(each.name for each in METADATA_COLUMNS)})(?![\w$])", re.IGNORECASE)


class TableWithMetadataColumns(TableForSpark):
    """A managed table at a snapshot, for the analyzer alone."""

    def __init__(self, engine: Engine, table: Table, scan: Scan) -> None:
        super().__init__(engine.gateway, table, scan.rows.schema)
        self.engine, self.scan = engine, scan

    @from_java
    def metadataColumns(self) -> Any:
        """The metadata columns that the table has."""
        kinds = metadata_columns_of(self.table)
        listed = self.gateway.array(spark41.METADATA_COLUMN, [None] * len(kinds))
        for at, (each, kind) in enumerate(kinds):  # by reflection: a Python object cannot be put there otherwise
            column = NamedMetadataColumn(self.gateway, each.name, kind)
            self.gateway.jvm.java.lang.reflect.Array.set(listed, at, column)
        return listed

    def canRenameConflictingMetadataColumns(self) -> bool:
        """A column of the table under such a name hides the metadata column."""
        return False

    @from_java
    def partitioning(self) -> Any:
        """Not asked for."""
        return self.gateway.array(spark41.TRANSFORM, [])

    @from_java
    def properties(self) -> Any:
        """Not asked for."""
        return self.gateway.jvm.java.util.HashMap()

    @from_java
    def capabilities(self) -> Any:
        """It looks as if it could be read."""
        kind = self.gateway.list_of(spark41.TABLE_CAPABILITY, "java.util.HashSet")
        return self.gateway.once(_READABLE, lambda: self.gateway.built(_CAPABILITIES, kind))

    @from_java
    def newScanBuilder(self, options: Any) -> Any:
        """Reads never come this way."""
        raise InvalidInput("metadata columns are not known to this form of statement", hint="select them in a query")

    def toString(self) -> str:
        """The scan that it stands for."""
        return f"lakeproof metadata columns of {self.scan.source.key}"

    class Java:
        """What py4j reads."""

        implements = [spark41.SUPPORTS_READ, spark41.SUPPORTS_METADATA_COLUMNS]  # noqa: RUF012


class NamedMetadataColumn(JavaProxy):
    """One metadata column, as Spark asks for it."""

    def __init__(self, gateway: Gateway, name: str, kind: spark.DataType) -> None:
        super().__init__(gateway)
        self.column, self.kind = name, kind

    def name(self) -> str:
        """Its name."""
        return self.column

    @from_java
    def dataType(self) -> Any:
        """Its type."""
        return self.gateway.java_schema(spark.StructType([spark.StructField("it", self.kind)])).apply(0).dataType()

    def isNullable(self) -> bool:
        """As everything is."""
        return True

    def comment(self) -> None:
        """None."""

    def transform(self) -> None:
        """None."""

    def metadataInJSON(self) -> None:
        """None."""

    def toString(self) -> str:
        """Its name."""
        return self.column

    class Java:
        """What py4j reads."""

        implements = [spark41.METADATA_COLUMN]  # noqa: RUF012


def read_natively(engine: Engine, rows: DataFrame, text: str, tables: dict[str, TableWithMetadataColumns]) -> DataFrame:
    """The query `text` with a native scan wherever one of the tables stands; those are told by what they print."""
    analyzed = spark41.execution_of(rows).analyzed()
    # Spark adds all metadata columns of a table where one is named, and hands them up through subqueries.
    named = {found.lower() for found in _ASKED.findall(text)}
    used = UsedAttributes(engine.gateway)
    analyzed.transformUpWithSubqueries(used)
    wanted = {number for name, number in used.found if name.lower() in named}
    return engine.gateway.dataframe(analyzed.transformUpWithSubqueries(NativeScans(engine, tables, wanted)))


class NodeFunction(JavaProxy):
    """A partial function of Scala's on the nodes of a plan."""

    def node(self, node: Any) -> Any:
        """What stands in the node's place."""
        raise NotImplementedError

    def isDefinedAt(self, node: Any) -> bool:
        """Everywhere."""
        return True

    @from_java
    def apply(self, node: Any) -> Any:
        """What stands in the node's place."""
        return self.node(node)

    @from_java
    def applyOrElse(self, node: Any, otherwise: Any) -> Any:
        """The same."""
        return self.node(node)


class UsedAttributes(NodeFunction):
    """Notes which attributes the nodes of a plan use: names and numbers."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self.found: set[tuple[str, int]] = set()

    def node(self, node: Any) -> Any:
        """The node as it is."""
        text = str(node.references().toSeq().mkString(SEPARATOR))
        self.found |= {(each[1], int(each[2])) for each in map(_ATTRIBUTE.match, text.split(SEPARATOR)) if each}
        return node

    class Java:
        """What py4j reads."""

        implements = [spark41.PARTIAL_FUNCTION]  # noqa: RUF012


class NativeScans(NodeFunction):
    """A relation of one of the tables becomes a native scan with the metadata columns that are wanted."""

    def __init__(self, engine: Engine, tables: dict[str, TableWithMetadataColumns], wanted: set[int]) -> None:
        super().__init__(engine.gateway)
        self.engine, self.tables, self.wanted = engine, tables, wanted

    def node(self, node: Any) -> Any:
        """The native scan, or the node as it is."""
        if str(node.getClass().getSimpleName()) != "DataSourceV2Relation":
            return node
        table = self.tables.get(str(node.table().toString()))
        return node if table is None else self._scan(node, table)

    def _scan(self, node: Any, table: TableWithMetadataColumns) -> Any:
        attributes = list(items_of(node.output()))
        own = len(table.scan.rows.schema.fields)
        asked = [each for each in attributes[own:] if int(each.exprId().id()) in self.wanted]
        rows = scan_with_metadata(self.engine.scans, table.scan, [str(each.name()) for each in asked])
        plan = spark41.execution_of(rows).analyzed()
        found = list(items_of(plan.output()))
        named = [self._named(value, as_) for value, as_ in zip(found, [*attributes[:own], *asked], strict=True)]
        named += [self._unused(each) for each in attributes[own:] if each not in asked]
        return self.gateway.module(spark41.PROJECT).apply(self.gateway.sequence(named), plan)

    def _named(self, value: Any, attribute: Any) -> Any:
        """The value under the attribute's name and number."""
        alias, name = self.gateway.module(spark41.ALIAS), str(attribute.name())
        return alias.apply(value, name, attribute.exprId(), *spark41.defaults(alias, "apply", range(4, 7), value, name))

    def _unused(self, attribute: Any) -> Any:
        literal = self.gateway.module(spark41.LITERAL)
        return self._named(literal.create(None, attribute.dataType()), attribute)

    class Java:
        """What py4j reads."""

        implements = [spark41.PARTIAL_FUNCTION]  # noqa: RUF012
