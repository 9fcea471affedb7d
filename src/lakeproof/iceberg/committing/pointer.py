"""The table pointer: read, and swapped if nobody was faster.

For a SQL catalog the pointer is one row, so the swap here is one conditional UPDATE of it: the exact metadata file that
was read must still be the current one. PyIceberg's own `commit_table` (used for every other catalog) would load, copy
and check the whole metadata again, which on a table of a thousand snapshots costs more than the rest of a commit.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import load_file_io
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import MetadataLogEntry, Snapshot, SnapshotLogEntry
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetSnapshotRefUpdate,
    TableUpdate,
)
from pyiceberg.typedef import Identifier
from sqlalchemy import bindparam, select, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from lakeproof.commit.upkeep import old_versions
from lakeproof.errors import CommitRejected
from lakeproof.iceberg.failures import database_was_busy, swapping
from lakeproof.iceberg.format_v3.metadata import (
    NEWEST,
    next_row_id,
    read_metadata,
    write_metadata,
)
from lakeproof.iceberg.pyiceberg_private import POINTERS
from lakeproof.iceberg.reading.lru import Recent
from lakeproof.iceberg.tables.branches import MAIN, CommitRef, whole_table
from lakeproof.iceberg.tables.properties import whole_number

KEPT_VERSIONS = 100
_recent: Recent[TableMetadata] = Recent(64)
_HERE = (
    POINTERS.c.catalog_name == bindparam("of_catalog"),
    POINTERS.c.table_namespace == bindparam("of_namespace"),
    POINTERS.c.table_name == bindparam("of_name"),
)
_POINTER = select(POINTERS.c.metadata_location).where(*_HERE)
_SWAP = (
    update(POINTERS)
    .where(*_HERE, POINTERS.c.metadata_location == bindparam("old_location"))
    .values(metadata_location=bindparam("new_location"), previous_metadata_location=bindparam("old_location"))
)


def load_newest(catalog: Catalog, name: Identifier) -> Table:
    """The table at its newest metadata. Metadata files never change, so each is read once."""
    if not isinstance(catalog, SqlCatalog):
        return catalog.load_table(name)
    location = _pointer(catalog, name)
    if location is None:
        raise NoSuchTableError(f"Table does not exist: {'.'.join(name)}")
    bare = load_file_io(catalog.properties, location)
    try:
        metadata = _recent.get(location, lambda: read_metadata(bare.new_input(location)))
    except FileNotFoundError:  # dropped as an old version between our two looks
        if _pointer(catalog, name) == location:
            raise
        return load_newest(catalog, name)
    io = load_file_io({**catalog.properties, **metadata.properties}, location)
    return Table(tuple(name), metadata, location, io, catalog)


def metadata_location(catalog: Catalog, name: Identifier) -> str:
    """The metadata file that the catalog points to, whatever it holds."""
    if not isinstance(catalog, SqlCatalog):
        return catalog.load_table(name).metadata_location
    location = _pointer(catalog, name)
    if location is None:
        raise NoSuchTableError(f"Table does not exist: {'.'.join(name)}")
    return location


def is_in_catalog(catalog: Catalog, name: Identifier) -> bool:
    """Whether the catalog points to a table of that name; its metadata is not read."""
    if isinstance(catalog, SqlCatalog):
        return _pointer(catalog, name) is not None
    return catalog.table_exists(name)


def refreshed(table: Table) -> Table:
    """The table at its newest metadata; the same object where nobody has changed it, or where no catalog has it."""
    table = whole_table(table)
    catalog = table.catalog
    if type(catalog) is NoopCatalog:
        return table
    if isinstance(catalog, SqlCatalog) and _pointer(catalog, table.name()) == table.metadata_location:
        return table
    return load_newest(catalog, table.name())


def _pointer(catalog: SqlCatalog, name: Identifier) -> str | None:
    """The metadata file that the catalog points to; a busy database is asked again."""
    for attempt in range(5):
        try:
            with catalog.engine.connect() as connection:
                return connection.scalar(_POINTER, _row(catalog, name))
        except OperationalError as error:
            if attempt == 4 or not database_was_busy(error):
                raise
    raise AssertionError("unreachable")


class StagedSwap(NamedTuple):
    """A request that can be sent: the snapshot, and for SQL catalogs the metadata file to which the row is to point.

    `before` is what is changed of the table together with it, where a table is replaced.
    """

    snapshot: Snapshot
    ref: CommitRef
    metadata: TableMetadata | None = None
    location: str = ""
    before: tuple[TableUpdate, ...] = ()


def stage(table: Table, snapshot: Snapshot, ref: CommitRef, written: list[str]) -> StagedSwap:
    """The request that adds the snapshot and moves the ref to it; a metadata file of it is noted in `written`."""
    if not isinstance(table.catalog, SqlCatalog):
        return StagedSwap(snapshot, ref)
    metadata = with_snapshot(table, snapshot, ref)
    version = metadata_version(table.metadata_location) + 1
    location = table.location_provider().new_table_metadata_file_location(version)
    written.append(location)
    write_metadata(metadata, table.io.new_output(location))
    return StagedSwap(snapshot, ref, metadata, location)


def swap(table: Table, staged: StagedSwap) -> Table:
    """The table with the snapshot as the branch's head.

    `CommitRejected`: somebody was faster, and this request will never do anything. `InvalidInput`: the catalog turned
    it down. Anything else that is raised says nothing about whether it happened.
    """
    place = f"table {'.'.join(table.name())}"
    if isinstance(table.catalog, SqlCatalog):
        return _swap_row(table, table.catalog, staged)
    requirements, updates = _request(table.metadata, staged)
    with swapping(place):
        answer = table.catalog.commit_table(table, requirements, updates)
    return _table_at(table, answer.metadata, answer.metadata_location)


def _request(metadata: TableMetadata, staged: StagedSwap) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What must still be true, and what is to be changed; a staged snapshot moves no branch."""
    branch, snapshot = staged.ref.branch, staged.snapshot
    known = metadata.refs.get(branch)
    requirements = (
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertRefSnapshotId.model_validate(
            {"ref": branch, "snapshot-id": None if known is None else known.snapshot_id}
        ),
    )
    added = AddSnapshotUpdate(snapshot=snapshot)
    if staged.ref.staged:
        return requirements, (*staged.before, added)
    ref = _ref(metadata, snapshot, branch).model_dump(by_alias=True, exclude_none=True)
    return requirements, (*staged.before, added, SetSnapshotRefUpdate.model_validate({"ref-name": branch, **ref}))


def with_snapshot(table: Table, snapshot: Snapshot, ref: CommitRef = MAIN) -> TableMetadata:
    """The table's metadata with one more snapshot."""
    old, branch = table.metadata, ref.branch
    previous = MetadataLogEntry.model_validate(
        {"metadata-file": table.metadata_location, "timestamp-ms": old.last_updated_ms}
    )
    kept = max(1, whole_number(old.properties, "write.metadata.previous-versions-max", KEPT_VERSIONS))
    changes: dict[str, Any] = {
        "last_updated_ms": snapshot.timestamp_ms,
        "snapshots": [*old.snapshots, snapshot],
        "metadata_log": [*old.metadata_log, previous][-kept:],
    }
    if old.format_version > 1:
        changes["last_sequence_number"] = snapshot.sequence_number
    if old.format_version >= NEWEST:
        changes["next_row_id"] = next_row_id(old) + (snapshot.added_rows or 0)
    if ref.staged:
        return old.model_copy(update=changes)
    changes["refs"] = {**old.refs, branch: _ref(old, snapshot, branch)}
    if branch == MAIN_BRANCH:
        logged = {"snapshot-id": snapshot.snapshot_id, "timestamp-ms": snapshot.timestamp_ms}
        changes["current_snapshot_id"] = snapshot.snapshot_id
        changes["snapshot_log"] = [*old.snapshot_log, SnapshotLogEntry.model_validate(logged)]
    return old.model_copy(update=changes)


def _ref(metadata: TableMetadata, snapshot: Snapshot, branch: str) -> SnapshotRef:
    """The branch at its new head, with its retention kept."""
    old = metadata.refs.get(branch)
    if old is not None:
        return old.model_copy(update={"snapshot_id": snapshot.snapshot_id})
    return SnapshotRef.model_validate({"snapshot-id": snapshot.snapshot_id, "type": SnapshotRefType.BRANCH})


def _swap_row(table: Table, catalog: SqlCatalog, staged: StagedSwap) -> Table:
    metadata, location = staged.metadata, staged.location
    assert metadata is not None
    swap_location(catalog, table.name(), table.metadata_location, location)
    _recent.get(location, lambda: metadata)
    _drop_old_versions(table, metadata)
    return _table_at(table, metadata, location)


def swap_location(catalog: SqlCatalog, name: Identifier, old: str, new: str) -> None:
    """The row points to another metadata file, if it still points to the old one; raises as `swap` does."""
    place = f"table {'.'.join(name)}"
    with swapping(place), Session(catalog.engine) as session:
        values = {"new_location": new, "old_location": old}
        swapped: Any = session.execute(_SWAP, {**_row(catalog, name), **values})
        if swapped.rowcount < 1:
            raise CommitRejected(f"{place}: somebody else swapped the table pointer first")
        session.commit()


def _row(catalog: SqlCatalog, name: Identifier) -> dict[str, str]:
    return {"of_catalog": catalog.name, "of_namespace": ".".join(name[:-1]), "of_name": name[-1]}


def _drop_old_versions(table: Table, metadata: TableMetadata) -> None:
    if metadata.properties.get("write.metadata.delete-after-commit.enabled", "false").lower() == "true":
        logged = {entry.metadata_file for entry in metadata.metadata_log}
        for path in old_versions((entry.metadata_file for entry in table.metadata.metadata_log), logged):
            with suppress(Exception):  # gone before, or it stays: the commit has happened
                table.io.delete(path)


def _table_at(table: Table, metadata: TableMetadata, location: str) -> Table:
    return Table(table.name(), metadata, location, table.io, table.catalog)


def metadata_version(location: str) -> int:
    """The number that a metadata file's name begins with; -1 for names of other shapes."""
    number = location.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else -1
