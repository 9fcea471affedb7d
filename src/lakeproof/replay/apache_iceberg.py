"""Apache Iceberg's own Spark runtime on our catalog: both engines see one live table.

Its `JdbcCatalog` opens the SQLite file that PyIceberg's catalog made, and the other way round. The catalog's name is a
column of the catalog's table, so both sides must call it by the same one.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from lakeproof.iceberg.tables.catalogs import BUSY_TIMEOUT_MS, CATALOG_NAME, NAMESPACE, open_catalog, warehouse_location
from lakeproof.spark.jvm.session import build_session

PACKAGES = ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", "org.xerial:sqlite-jdbc:3.50.3.0")
"""What Spark fetches by itself: Apache Iceberg for this Spark, and the driver of SQLite."""


def session_conf(catalog: Path, warehouse: str) -> dict[str, str]:
    """The settings under which Spark knows the tables of the SQLite file `catalog`."""
    name = f"spark.sql.catalog.{CATALOG_NAME}"
    return {
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        name: "org.apache.iceberg.spark.SparkCatalog",
        f"{name}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{name}.uri": f"jdbc:sqlite:{catalog.absolute()}?busy_timeout={BUSY_TIMEOUT_MS}",
        f"{name}.jdbc.schema-version": "V1",
        f"{name}.warehouse": warehouse_location(warehouse),
        f"{name}.cache-enabled": "false",  # others commit to the same tables
    }


def open_session(catalog: Path, warehouse: str, *, master: str = "local[2]", quick: bool = True) -> SparkSession:
    """A session of Apache Iceberg whose plain table names are those of our catalog."""
    conf = {
        **session_conf(catalog, warehouse),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    open_catalog(f"sqlite:///{catalog.absolute()}", warehouse)  # where it is new: the file, its tables, the namespace
    session = build_session(warehouse, master=master, quick=quick, conf=conf)
    session.sql(f"use {CATALOG_NAME}.{NAMESPACE}")
    return session
