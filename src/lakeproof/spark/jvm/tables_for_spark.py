"""What every table answers to Spark's newer interface, whoever it stands for."""

from __future__ import annotations

from typing import Any

from pyspark.sql import types as spark

from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, JavaProxy, from_java
from lakeproof.spark.jvm.versions import v2_columns


class TableForSpark(JavaProxy):
    """A managed table under its name, with these columns."""

    def __init__(self, gateway: Gateway, table: Table, columns: spark.StructType) -> None:
        super().__init__(gateway)
        self.table = table
        self.java_schema = gateway.java_schema(columns)

    def name(self) -> str:
        """The name in messages."""
        return ".".join(self.table.name())

    def id(self) -> None:
        """Spark need not know."""

    def version(self) -> None:
        """Spark need not know."""

    def schema(self) -> Any:
        """The columns."""
        return self.java_schema

    @from_java
    def columns(self) -> Any:
        """The same, as Spark's newer interface wants them."""
        return v2_columns(self.gateway.named(spark41.CATALOG_V2_UTIL), self.java_schema)

    @from_java
    def constraints(self) -> Any:
        """None."""
        return self.gateway.array(spark41.CONSTRAINT, [])
