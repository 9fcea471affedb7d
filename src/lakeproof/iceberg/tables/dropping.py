"""A table leaves its catalog together with its files.

What is dropped must be what was read: between the two the name may have come to mean another table, and the files of
the one that was read may belong to a table that lives on under another name.
"""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier
from sqlalchemy import delete
from sqlalchemy.orm import Session

from lakeproof.errors import CommitRejected
from lakeproof.iceberg.committing.pointer import load_newest
from lakeproof.iceberg.committing.table_access import remove_files
from lakeproof.iceberg.failures import swapping
from lakeproof.iceberg.reading.manifest_cache import shared_cache
from lakeproof.iceberg.upkeep.reachable import reachable_files

_TABLES: Any = IcebergTables.__table__


def purge_table(catalog: Catalog, name: Identifier) -> None:
    """Drop the table as it stands now, and remove every file that its metadata names."""
    if not isinstance(catalog, SqlCatalog):
        catalog.purge_table(name)
        return
    table = load_newest(catalog, name)
    files = named_files(table)
    _drop_row(catalog, table)
    remove_files(table, files)


def named_files(table: Table) -> set[str]:
    """Everything that the table's metadata names, and the metadata itself."""
    metadata = table.metadata
    statistics = (*metadata.statistics, *metadata.partition_statistics)
    return {
        *reachable_files(table, metadata.snapshots, shared_cache()).all(),
        *(entry.metadata_file for entry in metadata.metadata_log),
        *(each.statistics_path for each in statistics),
        table.metadata_location,
    }


def _drop_row(catalog: SqlCatalog, table: Table) -> None:
    """The row goes if it still points to this metadata; else somebody was faster."""
    *namespace, name = table.name()
    here = delete(_TABLES).where(
        _TABLES.c.catalog_name == catalog.name,
        _TABLES.c.table_namespace == ".".join(namespace),
        _TABLES.c.table_name == name,
        _TABLES.c.metadata_location == table.metadata_location,
    )
    place = f"table {'.'.join(table.name())}"
    with swapping(place), Session(catalog.engine) as session:
        dropped: Any = session.execute(here)
        if dropped.rowcount < 1:
            raise CommitRejected(f"{place}: somebody changed it meanwhile")
        session.commit()
