"""A repair is committed like any change: refreshed, validated, written, swapped; an unknown outcome is looked at.

It stands on the very metadata file that it was planned for: if the catalog points to another, it is refused.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Collection, Sequence
from typing import NamedTuple

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataUtil

from lakeproof.commit import CheckList, Command, Commit, CommitWith, TableChange, check_list
from lakeproof.commit.policy import LAKEPROOF
from lakeproof.errors import CommitConflict, InvalidInput
from lakeproof.format import TableShape
from lakeproof.iceberg.committing.commit import METADATA_WRITTEN, Hook, SeenHead, TableCalls, TakenNumber, no_hook
from lakeproof.iceberg.committing.pointer import load_newest, metadata_location, metadata_version, swap_location
from lakeproof.iceberg.committing.table_access import remove_from
from lakeproof.iceberg.committing.table_commits import go_through
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.inspecting.opening import RawTable, read_metadata
from lakeproof.iceberg.inspecting.raw_files import Damaged, damage_said
from lakeproof.iceberg.mending.drafts import Draft
from lakeproof.iceberg.tables.tables import identifier


def commit_draft(raw: RawTable, draft: Draft, on_phase: Hook = no_hook) -> str:
    """The new metadata file, once the catalog points to it."""
    if not isinstance(raw.catalog, SqlCatalog):
        raise InvalidInput(
            "this catalog takes only Iceberg's own changes, and a repair is none of them",
            place=f"table {raw.name}",
            hint="register the table in a SQL catalog, repair it there, and register it here again",
        )
    access = RepairAccess(raw, draft)
    calls = TableCalls(access, LAKEPROOF, check_list(()), on_phase, reruns_left=False)
    go_through(calls, {str(k): str(v) for k, v in (draft.words.get("properties") or {}).items()})
    own = access.own
    assert own is not None  # what was not committed was raised
    return own.location


def was_changed(name: str) -> str:
    """What is said of a plan that does not fit the table any more."""
    return (
        f"repair of {name} was not committed\n  because  the table was changed since the plan was made\n"
        "  next     make the plan again"
    )


class RepairTry(NamedTuple):
    """One try: the metadata file that it asks for, and all that was written for it."""

    location: str
    files: list[str]


class RepairAccess:
    """The table as a repair sees it: one metadata file that must still be the current one."""

    def __init__(self, raw: RawTable, draft: Draft) -> None:
        assert isinstance(raw.catalog, SqlCatalog)
        self.raw, self.draft, self.catalog = raw, draft, raw.catalog
        self.name = raw.name
        self.change = TableChange(Command.REWRITE, command_id=str(uuid.uuid4()))
        self.at = ""
        self.tries: list[RepairTry] = []

    @property
    def table(self) -> Table:
        """The table as it is now."""
        return load_newest(self.catalog, identifier(self.name))

    @property
    def head_id(self) -> int | None:
        """The head is not asked for: the metadata file is."""
        return None

    def refresh(self) -> None:
        """Ask where the catalog points."""
        with translate_errors(f"table {self.name}"):
            self.at = metadata_location(self.catalog, identifier(self.name))

    def seen(self, checks: CheckList) -> SeenHead:
        """Nothing to be validated, if the table is the one that the plan was made for."""
        if self.at != self.raw.location:
            raise CommitConflict(was_changed(self.name))
        return SeenHead(self.change, (), None, TableShape(()))

    def taken(self) -> TakenNumber:
        """Whether somebody else moved the pointer from where the plan stands."""
        moved = int(self.at != self.raw.location)
        return TakenNumber(1, moved, {1} if moved else ())

    def write(self, answer: Commit | CommitWith, written: Hook) -> None:
        """Write the files of the repair, and the metadata file that names them."""
        mine = RepairTry(self._new_location(), [])
        self.tries.append(mine)
        with translate_errors(f"table {self.name}"):
            draft = self.draft.fresh()
            draft.write(mine.files)
            written(METADATA_WRITTEN)
            words, now = draft.words, time.time_ns() // 1_000_000
            logged = {"metadata-file": self.raw.location, "timestamp-ms": int(words["last-updated-ms"])}
            words["metadata-log"] = [*(words.get("metadata-log") or []), logged]
            words["last-updated-ms"] = max(now, int(words["last-updated-ms"]))
            try:
                with damage_said():
                    TableMetadataUtil.parse_obj(words)
            except Damaged as error:
                raise InvalidInput(f"what would come of it makes no sense: {error}", place=self.name) from error
            mine.files.append(mine.location)
            with self.raw.io.new_output(mine.location).create() as stream:
                stream.write(json.dumps(words).encode())

    def _new_location(self) -> str:
        folder = self.raw.location.rpartition("/")[0]
        version = metadata_version(self.raw.location) + 1
        return f"{folder}/{version:05d}-{uuid.uuid4()}.metadata.json"

    def swap(self) -> None:
        """Let the catalog point to the new metadata file, if it points to the old one."""
        swap_location(self.catalog, identifier(self.name), self.raw.location, self.tries[-1].location)
        self.at = self.tries[-1].location

    def has_moved(self) -> bool:
        """Whether the catalog points elsewhere by now."""
        return metadata_location(self.catalog, identifier(self.name)) != self.raw.location

    @property
    def own(self) -> RepairTry | None:
        """The try whose metadata file is the current one, or was at any time."""
        if not self.tries or self.at == self.raw.location:
            return None
        log = read_metadata(self.raw.io, self.at).get("metadata-log") or []
        seen = {self.at, *(each.get("metadata-file") for each in log)}
        return next((each for each in self.tries if each.location in seen), None)

    def own_id(self) -> int | None:
        """Whether one of the tries was committed; a repair has no snapshot that could be named."""
        return None if self.own is None else 1

    def sent(self) -> Sequence[int]:
        """A repair makes no snapshot."""
        return []

    def written(self) -> Sequence[str]:
        """The files of the repair."""
        return [path for each in self.tries for path in each.files]

    def brought(self) -> Sequence[str]:
        """Nothing was brought."""
        return ()

    def named(self) -> Collection[str]:
        """The files of the try that was committed: its metadata file names what was written with it."""
        own = self.own
        return frozenset(() if own is None else own.files)

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files of a try that certainly did not happen."""
        remove_from(self.raw.io, paths)
