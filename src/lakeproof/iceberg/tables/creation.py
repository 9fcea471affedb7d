"""A table that becomes visible together with its first snapshot, or not at all (CREATE TABLE … AS SELECT).

It is staged: it has a schema, an identity and a folder, and the catalog does not know it. Its files are written, and
one request makes it. A query that fails and a process that is killed leave no table behind, and nobody can have
written into it before it is there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertCreate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
)

from lakeproof.commit.driver import certainly_failed
from lakeproof.errors import CommitRejected, CommitUnknown, InvalidInput, LakeproofError
from lakeproof.iceberg.committing.commit import METADATA_WRITTEN, SWAPPED, Hook, no_hook
from lakeproof.iceberg.committing.patience import wait_ms
from lakeproof.iceberg.committing.pointer import load_newest
from lakeproof.iceberg.committing.produce import FileChange, Producer
from lakeproof.iceberg.committing.table_access import remove_files
from lakeproof.iceberg.failures import swapping, translate_errors
from lakeproof.iceberg.pyiceberg_private import staged_by
from lakeproof.iceberg.reading.manifest_cache import shared_cache
from lakeproof.iceberg.tables.tables import TableDetails, describe_new_table

MOST_REQUESTS = 20


class StagedTable(NamedTuple):
    """A table that nobody sees yet, and what the catalog will be told of it."""

    table: Table
    updates: tuple[TableUpdate, ...]


def stage_table(catalog: Catalog, name: str, schema: Schema, **more: Unpack[TableDetails]) -> StagedTable:
    """The table as `create_table` would make it; files may be written for it, and nobody finds it."""
    told = describe_new_table(catalog, name, schema, **more)
    with translate_errors(f"table {name}"):
        transaction = catalog.create_table_transaction(**told)
    return StagedTable(*staged_by(transaction))


def create_with_defaults(
    catalog: Catalog, name: str, schema: Schema, defaults: Mapping[str, Any], **more: Unpack[TableDetails]
) -> Table:
    """A new table whose new rows have these values in these columns unless they say otherwise.

    PyIceberg forgets defaults where it gives columns their ids, so that the request is completed before it is sent.
    """
    staged = stage_table(catalog, name, schema, **more)
    updates = tuple(_with_defaults(each, defaults) for each in staged.updates)
    try:
        return _made(staged.table, updates, f"table {name}")
    except BaseException:
        abandon(staged)
        raise


def _with_defaults(update: TableUpdate, defaults: Mapping[str, Any]) -> TableUpdate:
    if not isinstance(update, AddSchemaUpdate):
        return update
    made = update.schema_
    fields = [
        field.model_copy(update={"write_default": defaults[field.name]}) if field.name in defaults else field
        for field in made.fields
    ]
    schema = Schema(*fields, schema_id=made.schema_id, identifier_field_ids=made.identifier_field_ids)
    return update.model_copy(update={"schema_": schema})


def publish(
    staged: StagedTable,
    files: Sequence[DataFile],
    *,
    properties: Mapping[str, str] | None = None,
    summary: Mapping[str, str] | None = None,
    on_phase: Hook = no_hook,
) -> Table:
    """The table with one snapshot of these files, visible from now on; `InvalidInput`: the name is taken."""
    table = staged.table
    place = f"table {'.'.join(table.name())}"
    producer = Producer(table, shared_cache())
    try:
        with translate_errors(place):
            snapshot = producer.produce(table, None, FileChange("append", tuple(files), summary=dict(summary or {})))
        ref = {"ref-name": MAIN_BRANCH, "type": "branch", "snapshot-id": snapshot.snapshot_id}
        updates: tuple[Any, ...] = (
            *staged.updates,
            SetPropertiesUpdate(updates=dict(properties or {})),
            AddSnapshotUpdate(snapshot=snapshot),
            SetSnapshotRefUpdate.model_validate(ref),
        )
        on_phase(METADATA_WRITTEN)
        made = _made(table, updates, place)
    except BaseException as error:
        if certainly_failed(error):
            remove_files(table, producer.written)
        raise
    on_phase(SWAPPED)
    return made


def abandon(staged: StagedTable) -> None:
    """Give back the folder of a table that was not made; one that holds a file stays."""
    location = staged.table.location()
    if location.startswith("file://"):
        folder = Path(location.removeprefix("file://"))
        below = sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True)
        for path in (*below, folder):
            with suppress(OSError):
                path.rmdir()


def _made(table: Table, updates: tuple[Any, ...], place: str) -> Table:
    """One request makes the table. If its answer is lost, a second cannot make another: the name is there once."""
    unanswered = False
    for lost in range(MOST_REQUESTS):
        try:
            with translate_errors(place):
                return _asked(table, updates, place)
        except CommitUnknown:
            unanswered = True
        except CommitRejected:
            pass  # the name is taken, perhaps by our own request, or the database is busy
        except LakeproofError as error:
            raise _unknown(place) if unanswered else error from error
        found = _found(table, place, unanswered=unanswered)
        if found is not None:
            return found
        time.sleep(wait_ms(table.properties, lost) / 1000)
    raise _unknown(place) if unanswered else CommitRejected(f"{place}: the catalog's database is busy")


def _asked(table: Table, updates: tuple[Any, ...], place: str) -> Table:
    try:
        with swapping(place):
            answer = table.catalog.commit_table(table, (AssertCreate(),), updates)
    except TableAlreadyExistsError as error:
        raise CommitRejected(f"{place} is there already") from error
    return Table(table.name(), answer.metadata, answer.metadata_location, table.io, table.catalog)


def _found(table: Table, place: str, *, unanswered: bool) -> Table | None:
    """The table, if it is there and ours; `None`: no table has the name. Another's is the end of ours."""
    try:
        with translate_errors(place):
            found = load_newest(table.catalog, table.name())
    except LakeproofError as error:
        if isinstance(error.__cause__, NoSuchTableError):
            return None
        raise _unknown(place) if unanswered else error from error
    if found.metadata.table_uuid == table.metadata.table_uuid:
        return found
    if unanswered:  # a request under way would still make it if the other table were dropped
        raise _unknown(place)
    raise InvalidInput("there is already a table of that name", place=place, hint="drop it first, or say IF NOT EXISTS")


def _unknown(place: str) -> CommitUnknown:
    return CommitUnknown(f"nobody knows whether {place} was made; look for it before running the command again")
