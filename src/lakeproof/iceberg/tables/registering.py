"""A table whose metadata lies somewhere gets a name in the catalog."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.catalog import Catalog
from pyiceberg.io import load_file_io
from pyiceberg.table import Table

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.format_v3.metadata import read_metadata
from lakeproof.iceberg.tables.tables import create_namespace, identifier, table_exists


def register_table(catalog: Catalog, name: str, metadata_file: str) -> Table:
    """The table that the metadata file describes, under this name; a name or a file that will not do is refused."""
    path = metadata_file if "://" in metadata_file else f"file://{Path(metadata_file.removeprefix('file:')).absolute()}"
    if table_exists(catalog, name):
        raise InvalidInput(f"there is already a table `{name}`", hint="choose another name, or drop it first")
    try:
        with translate_errors(f"metadata file {path}"):
            read_metadata(load_file_io(catalog.properties, path).new_input(path))
    except ValueError as error:  # JSON of another kind
        raise InvalidInput("this is no metadata of a table", place=path, hint="give a *.metadata.json") from error
    create_namespace(catalog, identifier(name)[0], if_not_exists=True)
    with translate_errors(f"table {name}"):
        return catalog.register_table(identifier(name), path)
