"""What a session must know and do, whoever built it, before it works on managed tables."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSource

from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway


class _IcebergName(DataSource):  # type: ignore[misc]
    """Makes `iceberg` a name that Spark's parser lets through to the session's catalog; it is never read from."""

    @classmethod
    def name(cls) -> str:
        return "iceberg"


def know_provider(gateway: Gateway) -> None:
    """Spark asks for the data source behind `using iceberg` before it asks the catalog; a real one is left alone."""
    sources = gateway.module(spark41.DATA_SOURCE)
    try:
        sources.lookupDataSource("iceberg", gateway.session.sessionState().conf())
    except (PySparkException, Py4JError):
        gateway.spark.dataSource.register(_IcebergName)


def quiet_local_files(gateway: Gateway) -> None:
    """Hadoop's local file system writes no checksum files: nobody reads them, and they would look like orphans."""
    local = gateway.jvm.java.net.URI("file:///")
    conf = gateway.session.sessionState().newHadoopConf()
    gateway.jvm.org.apache.hadoop.fs.FileSystem.get(local, conf).setWriteChecksum(False)
