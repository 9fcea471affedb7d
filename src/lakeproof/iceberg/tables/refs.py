"""Branches, tags, rollback, and which snapshot a name or an instant means."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AssertRefSnapshotId, RemoveSnapshotRefUpdate, SetSnapshotRefUpdate

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.retrying import change_metadata, commit_updates
from lakeproof.iceberg.tables.branches import CommitRef, at_ref, at_snapshot, line_from
from lakeproof.iceberg.tables.tables import find_table, joined_name, name_parts

LONGEST_ID, MOST_SHOWN = 20, 200
"""Digits of a snapshot's id; characters of a name that is not there."""


def create_branch(table: Table, name: str, snapshot_id: int | None = None, **retention: int) -> Table:
    """A branch at a snapshot (`None`: the current one); `retention` may hold `max_ref_age_ms` and the like."""
    return _create(table, name, "branch", snapshot_id, retention)


def create_tag(table: Table, name: str, snapshot_id: int | None = None, **retention: int) -> Table:
    """A tag at a snapshot (`None`: the current one)."""
    return _create(table, name, "tag", snapshot_id, retention)


def replace_ref(
    table: Table, name: str, kind: str, snapshot_id: int | None = None, *, must_exist: bool = False, **retention: int
) -> Table:
    """The branch or tag is at that snapshot now; one that is there keeps the retention that is not given."""
    return _create(table, name, kind, snapshot_id, retention, replaces="must" if must_exist else "may")


def drop_ref(table: Table, name: str, *, kind: str, if_exists: bool = False) -> Table:
    """The branch or tag is gone; its snapshots stay until they are expired."""
    if name == MAIN_BRANCH:
        raise InvalidInput("the branch `main` cannot be dropped", place=_place(table))

    def change(newest: Table) -> Table:
        ref = newest.metadata.refs.get(name)
        if ref is None or ref.snapshot_ref_type.value != kind:
            if if_exists:
                return newest
            raise InvalidInput(f"there is no {kind} `{name}`", place=_place(table), hint=_known(newest, kind))
        return _commit(newest, name, RemoveSnapshotRefUpdate.model_validate({"ref-name": name}))

    return change_metadata(table, change)


def set_current_snapshot(table: Table, snapshot_id: int) -> Table:
    """`main` is at that snapshot, whichever it is."""
    return change_metadata(table, lambda newest: move_branch(newest, snapshot_id))


def rollback_to_snapshot(table: Table, snapshot_id: int) -> Table:
    """`main` is back at one of its own ancestors."""

    def change(newest: Table) -> Table:
        known_snapshot(newest, snapshot_id)
        if snapshot_id not in {snapshot.snapshot_id for snapshot in ancestors(newest)}:
            raise InvalidInput(
                f"snapshot {snapshot_id} is not an ancestor of the current one",
                place=_place(table),
                hint="set_current_snapshot moves to any snapshot",
            )
        return move_branch(newest, snapshot_id)

    return change_metadata(table, change)


def rollback_to_timestamp(table: Table, timestamp_ms: int) -> Table:
    """`main` is back at the newest of its ancestors at or before the instant."""
    return change_metadata(table, lambda newest: move_branch(newest, snapshot_as_of(newest, timestamp_ms).snapshot_id))


def ancestors(table: Table, snapshot_id: int | None = None) -> list[Snapshot]:
    """The snapshot (`None`: the current one) and its ancestors, newest first."""
    start = table.current_snapshot() if snapshot_id is None else known_snapshot(table, snapshot_id)
    return list(line_from(start, table.metadata))


def snapshot_as_of(table: Table, timestamp_ms: int) -> Snapshot:
    """The snapshot that was current at that instant: the newest entry of the table's log at or before it."""
    log = table.metadata.snapshot_log
    for entry in reversed(log):
        if entry.timestamp_ms <= timestamp_ms:
            snapshot = table.snapshot_by_id(entry.snapshot_id)
            if snapshot is None:
                raise InvalidInput(
                    f"the snapshot of {_worded(timestamp_ms)} was expired", place=_place(table), hint=_first(table)
                )
            return snapshot
    raise InvalidInput(f"the table had no snapshot at {_worded(timestamp_ms)}", place=_place(table), hint=_first(table))


def snapshot_of_version(table: Table, version: str | int) -> Snapshot:
    """The snapshot that `version as of` means: an id, a branch or a tag."""
    ref = table.metadata.refs.get(str(version))
    is_number = str(version).isdecimal() and len(str(version)) <= LONGEST_ID
    number = ref.snapshot_id if ref is not None else int(version) if is_number else None
    found = None if number is None else table.snapshot_by_id(number)
    if found is None:
        known = ", ".join(sorted(table.metadata.refs)) or "none"
        raise InvalidInput(
            f"there is no snapshot, branch or tag `{str(version)[:MOST_SHOWN]}`",
            place=_place(table),
            hint=f"branches and tags: {known}",
        )
    return found


_VERSION = re.compile(r"(branch|tag|snapshot_id|at_timestamp)_(.+)", re.DOTALL)


def find_version(catalog: Catalog, name: str) -> Table | None:
    """The table at the branch, tag, snapshot or instant that ends the name (`t.branch_b`); `None`: it does not."""
    *before, last = name_parts(name)
    chosen = _VERSION.fullmatch(last)
    if chosen is None or len(before) < 2:
        return None
    table = find_table(catalog, joined_name(before))
    return None if table is None else _at(table, chosen[1], chosen[2])


def _at(table: Table, kind: str, word: str) -> Table:
    if kind == "branch":
        return at_ref(table, CommitRef(word))
    if kind == "tag":
        ref = table.metadata.refs.get(word)
        if ref is None or ref.snapshot_ref_type.value != "tag":
            raise InvalidInput(f"there is no tag `{word}`", place=_place(table), hint=_known(table, "tag"))
        return at_snapshot(table, ref.snapshot_id, f"the tag `{word}`")
    if not word.isdecimal():
        raise InvalidInput(f"`{kind}_{word}` needs a number", place=_place(table))
    if kind == "snapshot_id":
        known_snapshot(table, int(word))
        return at_snapshot(table, int(word), f"snapshot {word}")
    return at_snapshot(table, snapshot_as_of(table, int(word)).snapshot_id, f"the table of instant {word}")


def _create(
    table: Table, name: str, kind: str, snapshot_id: int | None, retention: dict[str, int], replaces: str = ""
) -> Table:
    current = table.current_snapshot()
    if snapshot_id is None:
        if current is None:
            raise InvalidInput(f"an empty table cannot have a {kind}", place=_place(table), hint="insert first")
        snapshot_id = current.snapshot_id
    fields = {key.replace("_", "-"): value for key, value in retention.items()}
    update = {"ref-name": name, "type": kind, "snapshot-id": snapshot_id, **fields}

    def change(newest: Table) -> Table:
        known_snapshot(newest, snapshot_id)
        kept = _replaced(newest, name, kind, replaces)
        return _commit(newest, name, SetSnapshotRefUpdate.model_validate({**kept, **update}))

    return change_metadata(table, change)


def _replaced(table: Table, name: str, kind: str, replaces: str) -> dict[str, Any]:
    """What stays of the ref that is replaced: its retention; nothing where there is none."""
    known = table.metadata.refs.get(name)
    if known is None:
        if replaces == "must":
            raise InvalidInput(f"there is no {kind} `{name}`", place=_place(table), hint=_known(table, kind))
        return {}
    if not replaces:
        raise InvalidInput(f"there is already a branch or tag `{name}`", place=_place(table))
    if known.snapshot_ref_type.value != kind:
        is_a = known.snapshot_ref_type.value
        raise InvalidInput(f"`{name}` is a {is_a} and no {kind}", place=_place(table), hint="choose another name")
    return dict(known.model_dump(by_alias=True, exclude_none=True))


def move_branch(table: Table, snapshot_id: int, branch: str = MAIN_BRANCH) -> Table:
    """The branch is at that snapshot, if it stood in this metadata where it stands now; its retention stays."""
    known_snapshot(table, snapshot_id)
    ref = table.metadata.refs.get(branch)
    kept = ref.model_dump(by_alias=True, exclude_none=True) if ref is not None else {"type": "branch"}
    update = {**kept, "ref-name": branch, "snapshot-id": snapshot_id}
    return _commit(table, branch, SetSnapshotRefUpdate.model_validate(update))


def _commit(table: Table, name: str, update: Any) -> Table:
    """The ref must stand where it stood in this metadata."""
    ref = table.metadata.refs.get(name)
    stands = AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": None if ref is None else ref.snapshot_id})
    return commit_updates(table, [stands], [update])


def known_snapshot(table: Table, snapshot_id: int) -> Snapshot:
    """The snapshot of that id; an `InvalidInput` where there is none."""
    found = table.snapshot_by_id(snapshot_id)
    if found is None:
        raise InvalidInput(
            f"there is no snapshot {snapshot_id}", place=_place(table), hint="see the table's `$snapshots`"
        )
    return found


def _known(table: Table, kind: str) -> str:
    names = [name for name, ref in table.metadata.refs.items() if ref.snapshot_ref_type.value == kind]
    return f"known: {', '.join(sorted(names)) or 'none'}"


def _first(table: Table) -> str:
    if not table.metadata.snapshots:
        return "the table has no snapshot yet"
    first = min(table.metadata.snapshots, key=lambda snapshot: snapshot.timestamp_ms)
    made = f"{_worded(first.timestamp_ms)} (epoch millis {first.timestamp_ms})"
    return f"the first snapshot is {first.snapshot_id}, made at {made}"


def _worded(timestamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, ValueError, OSError):  # in no year from 1 to 9999
        return f"{timestamp_ms} milliseconds since 1970"


def _place(table: Table) -> str:
    return f"table {'.'.join(table.name())}"
