"""Where a commit goes, and a table as one of its branches shows it.

Whatever reads a table's head, or commits on top of it, is handed the table at its branch and need not know: the head is
the branch's, and the commit goes there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot

from lakeproof.errors import InvalidInput

WAP_ID = "wap.id"


class CommitRef(NamedTuple):
    """What a commit moves: a branch (one that `may_be_new` begins at the head of main), or nothing where it is staged.

    A staged snapshot stands on the branch's head and waits, under the `wap.id` that `staged_as` is, to be published.
    """

    branch: str = MAIN_BRANCH
    may_be_new: bool = False
    staged_as: str = ""

    @property
    def staged(self) -> bool:
        """Whether the snapshot waits, and no branch moves."""
        return bool(self.staged_as)

    @property
    def summary(self) -> dict[str, str]:
        """What a staged snapshot says, so that it is found when it is published."""
        return {WAP_ID: self.staged_as} if self.staged else {}

    def head_in(self, metadata: TableMetadata) -> int | None:
        """The snapshot on which the next one stands; `None`: there is none."""
        ref = metadata.refs.get(self.branch)
        if ref is None and self.may_be_new:
            ref = metadata.refs.get(MAIN_BRANCH)
        return None if ref is None else ref.snapshot_id


MAIN = CommitRef()


class TableAt(Table):
    """A table whose head is another snapshot than that of main: that of a branch, or one that stays (a tag).

    Its metadata are never written: whoever changes the table starts from `whole`.
    """

    def __init__(self, whole: Table, head: int | None, ref: CommitRef | None, label: str) -> None:
        metadata = whole.metadata.model_copy(update={"current_snapshot_id": head})
        super().__init__(whole.name(), metadata, whole.metadata_location, whole.io, whole.catalog)
        self.whole, self.ref, self.label = whole, ref, label


def whole_table(table: Table) -> Table:
    """The table itself, of which `table` may be a view."""
    return table.whole if isinstance(table, TableAt) else table


def ref_of(table: Table) -> CommitRef:
    """Where a change of this table is committed; a version that stays cannot be changed."""
    if not isinstance(table, TableAt):
        return MAIN
    if table.ref is None:
        place = f"table {'.'.join(table.name())}"
        raise InvalidInput(f"{table.label} cannot be written", place=place, hint="write to the table, or to a branch")
    return table.ref


def label_of(table: Table) -> str:
    """What tells the views of a table apart; nothing for the table itself."""
    return table.label if isinstance(table, TableAt) else ""


def at_ref(table: Table, ref: CommitRef) -> Table:
    """The table as the branch shows it; one that must be there and is not is an `InvalidInput`."""
    whole = whole_table(table)
    if ref == MAIN:
        return whole
    known = whole.metadata.refs.get(ref.branch)
    place = f"table {'.'.join(whole.name())}"
    if known is None and not ref.may_be_new and ref.branch != MAIN_BRANCH:
        names = sorted(name for name, each in whole.metadata.refs.items() if each.snapshot_ref_type.value == "branch")
        hint = f"branches: {', '.join(names) or 'none'}; create it first"
        raise InvalidInput(f"there is no branch `{ref.branch}`", place=place, hint=hint)
    if known is not None and known.snapshot_ref_type.value != "branch":
        raise InvalidInput(f"`{ref.branch}` is a tag and cannot be written", place=place, hint="write to a branch")
    label = f"staged on {ref.branch}" if ref.staged else f"branch {ref.branch}"
    return TableAt(whole, ref.head_in(whole.metadata), ref, label)


def at_branch(table: Table, branch: str) -> Table:
    """The table as the branch shows it; one that is a view of a branch already stays so for `main`."""
    return table if branch == MAIN_BRANCH else at_ref(table, CommitRef(branch))


def at_snapshot(table: Table, snapshot_id: int, label: str) -> Table:
    """The table as it was at a snapshot: to be read, with the columns of then."""
    return TableAt(whole_table(table), snapshot_id, None, label)


def line_from(snapshot: Snapshot | None, metadata: TableMetadata) -> Iterator[Snapshot]:
    """A snapshot and those below it, as far as they are there; where damaged metadata lead in a circle, once."""
    seen: set[int] = set()
    while snapshot is not None and snapshot.snapshot_id not in seen:
        seen.add(snapshot.snapshot_id)
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else metadata.snapshot_by_id(parent)
