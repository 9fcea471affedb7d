"""A catalog is opened from a URI, and the same tables open with `pyiceberg.catalog.load_catalog("lakeproof", …)`."""

from __future__ import annotations

from pyiceberg.catalog import Catalog

CATALOG_NAME = "lakeproof"
NAMESPACE = "default"
DEFAULT_URI = "sqlite:///lakehouse/catalog.db"
DEFAULT_WAREHOUSE = "./lakehouse"


def open_catalog(uri: str = DEFAULT_URI, warehouse: str = DEFAULT_WAREHOUSE) -> Catalog:
    """The catalog at `uri` (`sqlite:///…`, `postgresql+psycopg://…`, `http(s)://…`, `memory:`), with namespace `default`."""
    raise NotImplementedError
