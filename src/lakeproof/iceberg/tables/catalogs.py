"""A catalog is opened from a URI, and the same tables open with `pyiceberg.catalog.load_catalog("lakeproof", …)`."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from sqlalchemy import event
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from lakeproof.errors import InvalidInput, Unavailable, hide_secrets, remember_secrets
from lakeproof.iceberg.failures import database_was_busy, translate_errors
from lakeproof.iceberg.pyiceberg_private import keeping

CATALOG_NAME = "lakeproof"
NAMESPACE = "default"
DEFAULT_URI = "sqlite:///lakehouse/catalog.db"
DEFAULT_WAREHOUSE = "./lakehouse"
BUSY_TIMEOUT_MS = 10_000
URI_HINT = "sqlite:///FILE, postgresql+psycopg://…, http(s)://… (REST) or memory:"


def open_catalog(uri: str = DEFAULT_URI, warehouse: str = DEFAULT_WAREHOUSE, **properties: str) -> Catalog:
    """The catalog at `uri` (SQLite, PostgreSQL, REST or memory), with the namespace `default` in it."""
    remember_secrets(uri, properties)
    place = f"catalog {hide_secrets(uri)}"
    _require_escapes(uri, place)
    if uri in ("memory:", "memory"):
        catalog = _load(place, type="in-memory", warehouse=warehouse_location(warehouse), **properties)
    elif uri.startswith(("http://", "https://")):
        given = {} if warehouse == DEFAULT_WAREHOUSE else {"warehouse": warehouse}
        catalog = _load(place, type="rest", uri=uri, **given, **properties)
    elif uri.startswith("sqlite:///"):
        catalog = _open_sqlite(place, uri, warehouse_location(warehouse), properties)
    elif uri.startswith(("postgresql://", "postgresql+psycopg://")):
        uri = uri.replace("postgresql://", "postgresql+psycopg://", 1)
        catalog = _load(place, type="sql", uri=uri, warehouse=warehouse_location(warehouse), **properties)
    else:
        raise InvalidInput("this is not the URI of a catalog", place=place, hint=URI_HINT)
    return _with_default_namespace(place, catalog)


def _require_escapes(uri: str, place: str) -> None:
    """Libraries take what follows the first `@` for a host and print it: a password with such a mark must escape it."""
    user, at, _host = uri.partition("://")[2].rpartition("@")
    if at and ":" in user and re.search(r"[@/?#]", user):
        hint = "write @ as %40, / as %2F, ? as %3F and # as %23 in it"
        raise InvalidInput("the password holds a mark that a URI must escape", place=place, hint=hint)


def warehouse_location(warehouse: str) -> str:
    """A warehouse as the tables spell it: a URI stays, a folder becomes `file:///…` and is made."""
    if re.match(r"^[a-zA-Z][a-zA-Z0-9+.-]+://", warehouse) and not warehouse.startswith("file://"):
        return warehouse.rstrip("/")
    folder = Path(warehouse.removeprefix("file://")).absolute()
    place = f"warehouse {warehouse}"
    if "#" in str(folder) or "?" in str(folder):
        raise InvalidInput("a warehouse folder cannot hold `#` or `?` in its name", place=place, hint="rename it")
    with translate_errors(place):
        folder.mkdir(parents=True, exist_ok=True)
    return f"file://{folder}"


def _open_sqlite(place: str, uri: str, warehouse: str, properties: dict[str, str]) -> Catalog:
    """Many processes may share the file: readers do not block (WAL), and a writer waits for its turn."""
    file = Path(uri.removeprefix("sqlite:///").partition("?")[0]).absolute()
    with translate_errors(place):
        file.parent.mkdir(parents=True, exist_ok=True)
    catalog = _load(place, type="sql", uri=f"sqlite:///{file}", warehouse=warehouse, **properties)
    assert isinstance(catalog, SqlCatalog)
    event.listen(catalog.engine, "connect", _share)
    catalog.engine.dispose()
    return catalog


def _share(connection: Any, _record: object) -> None:
    # The waiting comes first: switching the journal mode needs a lock itself, and stays in the file once it is done.
    connection.execute(f"pragma busy_timeout = {BUSY_TIMEOUT_MS}")
    if connection.execute("pragma journal_mode").fetchone()[0] != "wal":
        connection.execute("pragma journal_mode = wal")


def _load(place: str, **properties: str) -> Catalog:
    """Two processes may both find the catalog's tables missing and make them: the slower one looks again."""
    for attempt in range(20):
        try:
            with translate_errors(place):
                catalog = load_catalog(CATALOG_NAME, **properties)
                return keeping(catalog) if isinstance(catalog, SqlCatalog) else catalog
        except (InvalidInput, Unavailable) as error:
            cause = error.__cause__
            if attempt == 19 or not isinstance(cause, SQLAlchemyError) or not _made_at_once(cause):
                raise
            time.sleep(0.05)
    raise AssertionError("unreachable")


def _made_at_once(error: SQLAlchemyError) -> bool:
    return database_was_busy(error) or isinstance(error, IntegrityError) or "already exists" in str(error)


def _with_default_namespace(place: str, catalog: Catalog) -> Catalog:
    with translate_errors(place):
        if not catalog.namespace_exists(NAMESPACE):
            with suppress(NamespaceAlreadyExistsError, IntegrityError):  # another process was faster
                catalog.create_namespace(NAMESPACE)
    return catalog
