"""Delete files that name no file of the table leave its head, by an ordinary commit."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from pyiceberg.table.snapshots import Snapshot

from lakeproof.commit import Command, Commit, CommitWith, TableChange, check_list
from lakeproof.commit.policy import LAKEPROOF
from lakeproof.errors import CommitConflict
from lakeproof.iceberg.committing.commit import Committed, TableCalls, no_hook
from lakeproof.iceberg.committing.physical import NO_FILES, Wanted
from lakeproof.iceberg.committing.produce import FileChange, Producer
from lakeproof.iceberg.committing.summary import record_of
from lakeproof.iceberg.committing.table_access import TableAccess
from lakeproof.iceberg.committing.table_commits import go_through
from lakeproof.iceberg.inspecting.opening import RawTable
from lakeproof.iceberg.mending.commit import was_changed
from lakeproof.iceberg.reading.delete_files import place_of
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.tables import load_table


def drop_dangling(raw: RawTable, paths: Sequence[str], head: int | None) -> str:
    """The metadata file after a snapshot without these delete files, on top of the head that they dangle at."""
    assert raw.catalog is not None
    table = load_table(raw.catalog, raw.name)
    change = TableChange(Command.REWRITE, command_id=str(uuid.uuid4()), scan_snapshot=head)
    access = _WithoutDangling(table, Wanted(change, NO_FILES, LAKEPROOF, record_of(change, LAKEPROOF, 0)))
    access.dangling, access.dangles_at = tuple(paths), head
    done = go_through(TableCalls(access, LAKEPROOF, check_list(()), no_hook, reruns_left=False), table.properties)
    assert isinstance(done, Committed)  # nothing is asked, so nothing is refused
    return str(done.table.metadata_location)


class _WithoutDangling(TableAccess):
    """A commit that takes delete files out of one head: at another one, what they name may be in the table again."""

    dangling: tuple[str, ...] = ()
    dangles_at: int | None = None

    def produced(self, answer: Commit | CommitWith, producer: Producer, others: list[str]) -> Snapshot:
        """The head without them."""
        if self.head_id != self.dangles_at:
            raise CommitConflict(was_changed(self.name))
        change = FileChange("replace", removed_delete_files=self._keys(), summary=self.wanted.summary)
        return producer.produce(self.table, self.head, change)

    def _keys(self) -> tuple[str, ...]:
        """The dangling files by what tells them apart: of a Puffin file only the vectors whose data file is gone."""
        planned = plan(self.table, snapshot_id=self.head_id)
        there = set(planned.files["path"].to_pylist())
        vectors = [row for row in planned.delete_files.to_pylist() if row["content"] == "deletion-vector"]
        mine = [row for row in vectors if row["path"] in self.dangling and row["referenced_file"] not in there]
        others = set(self.dangling) - {row["path"] for row in vectors}
        return (*sorted(others), *(place_of(row).key for row in mine))
