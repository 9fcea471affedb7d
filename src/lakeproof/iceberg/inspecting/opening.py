"""A table's metadata as it is written, before anybody has made sense of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.metadata import TableMetadataUtil

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.pointer import metadata_location
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.inspecting.raw_files import Damaged, Gone, damage_said, read_bytes
from lakeproof.iceberg.tables.branches import whole_table
from lakeproof.iceberg.tables.tables import identifier
from lakeproof.iceberg.upkeep.table_on_disk import newest_metadata


class RawTable(NamedTuple):
    """A table's metadata file: its words (`None`: unreadable, `why` says it), and the table where PyIceberg takes them.

    `catalog` `None`: the table was opened by its files, to be read and not to be changed.
    """

    name: str
    location: str
    io: FileIO
    words: dict[str, Any] | None
    table: Table | None
    why: str = ""
    catalog: Catalog | None = None


def open_by_name(catalog: Catalog, name: str) -> RawTable:
    """The table that a catalog points to."""
    place = f"table {name}"
    with translate_errors(place):
        location = metadata_location(catalog, identifier(name))
        if isinstance(catalog, SqlCatalog):
            store = load_file_io(catalog.properties, location)
        else:  # a server may give the keys of the store with the table
            store = catalog.load_table(identifier(name)).io
    return _opened(name, location, store, catalog)


def open_by_place(place: str) -> RawTable:
    """The table of a `*.metadata.json`, or of a folder with a `metadata` folder in it."""
    path = newest_metadata(place)
    location = f"file://{Path(path).resolve()}" if Path(path).exists() else path
    if "://" not in location:
        raise InvalidInput("there is no such file", place=place)
    return _opened(place, location, load_file_io({}, location), None)


def open_loaded(table: Table, name: str) -> RawTable:
    """The metadata file of a table that is loaded; it is read again."""
    whole = whole_table(table)
    catalog = None if isinstance(whole, StaticTable) else whole.catalog
    location = whole.metadata_location
    return _opened(name, location if "://" in location else f"file://{location}", whole.io, catalog)


def _opened(name: str, location: str, store: FileIO, catalog: Catalog | None) -> RawTable:
    try:
        words = read_metadata(store, location)
    except Gone:
        return RawTable(name, location, store, None, None, "it is not there", catalog)
    except Damaged as error:
        return RawTable(name, location, store, None, None, str(error), catalog)
    try:
        with damage_said():
            table = _table(name, location, store, words, catalog)
    except Damaged as error:
        return RawTable(name, location, store, words, None, str(error), catalog)
    return RawTable(name, location, table.io, words, table, "", catalog)


def read_metadata(store: FileIO, location: str) -> dict[str, Any]:
    """The words of a metadata file, also of one that is packed."""
    data = read_bytes(store, location)
    with damage_said():
        words = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        if not isinstance(words, dict):
            raise Damaged("it holds no object")
        return words


def _table(name: str, location: str, store: FileIO, words: dict[str, Any], catalog: Catalog | None) -> Table:
    metadata = TableMetadataUtil.parse_obj(words)
    if catalog is None:
        table: Table = StaticTable.from_metadata(location)
        return table
    if isinstance(catalog, SqlCatalog):
        store = load_file_io({**catalog.properties, **metadata.properties}, location)
    return Table(identifier(name), metadata, location, store, catalog)
