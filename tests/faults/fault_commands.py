"""What the writers of a fault run do, each command with a number of its own that the judge finds in the rows.

The table is that of the simulation, `(id, p, v)` partitioned by `p`, and its commands are run by the same code.
Partition 0 holds accounts, 1 a line for every transfer between two of them (both in one commit), 2 to 4 rows that are
inserted, updated and deleted, 5 rows that a MERGE inserts where they are missing, 6 and 7 are overwritten and emptied.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from commands import (
    Command_,
    Compact,
    DeletePartition,
    Insert,
    OverwritePartition,
    RewriteManifests,
    RowLevel,
    copied_change,
    merged_change,
)
from pyiceberg.catalog import Catalog
from rows_in_files import Scanned, scanned, write

from lakeproof.commit import Command, Isolation, Mode, TableChange
from lakeproof.filters import Compare, any_of
from lakeproof.iceberg.committing.commit import Committed
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables import tables
from lakeproof.iceberg.tables.refs import create_tag
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files

TABLE = "default.t"
ACCOUNTS, START = tuple(range(1, 9)), 1000
LEDGER, JOURNAL, MERGED, OVERWRITTEN = 1, (2, 3, 4), 5, (6, 7)
NUMBERS_OF_ONE = 1_000_000
"""A writer's numbers begin at a multiple of this; ids of inserted rows are ten times a number and a digit."""
STEP, LAST_DIGIT = 10, 5
"""From number to number, and how each ends: the id of a transfer's line is its number, and no inserted row has that."""
MERGE_KEYS = 100
FAST = {
    "commit.retry.min-wait-ms": "5",
    "commit.retry.max-wait-ms": "100",
    "commit.retry.total-timeout-ms": "15000",
    "commit.manifest.min-count-to-merge": "20",
    "write.metadata.previous-versions-max": "20",
    "write.metadata.delete-after-commit.enabled": "true",
}
Told = dict[str, Any]


@dataclass
class Transfer(RowLevel):
    """An amount goes from one account to another, and a line says so: one MERGE at serializable."""

    to: int = 0
    amount: int = 0
    only_there = True

    def prepared(self, table: Table, seen: Scanned, mode: Mode) -> tuple[TableChange, NewFiles] | None:
        targets = [*seen.found(self.key), *seen.found(self.to)]
        head = table.current_snapshot()
        both = any_of((Compare("id", "=", self.key), Compare("id", "=", self.to)))
        base = TableChange(
            Command.MERGE,
            mode,
            Isolation.SERIALIZABLE,
            command_id=f"command-{self.number}",
            scan_snapshot=None if head is None else head.snapshot_id,
            scan_sequence_number=table.metadata.next_sequence_number() - 1,
            conflict_filter=both,
        )
        moved = {self.key: -self.amount, self.to: self.amount}
        rows = [(row[0], row[1], row[2] + moved[row[0]]) for _, _, row in targets]
        files = write(table, [*rows, (self.number, LEDGER, self.amount)])
        made = copied_change if mode is Mode.COPY_ON_WRITE else merged_change
        return made(table, base, seen, targets, files)


class OneRow(RowLevel):
    """UPDATE or DELETE of an inserted row, or MERGE of one; only its partition is read."""

    only_there = True


class CompactOne(Compact):
    """Compaction of one partition; only that is read."""

    only_there = True


@dataclass
class Expire(Command_):
    """All snapshots go but the newest few and those that a tag holds."""

    retain_last: int

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        expire_snapshots(tables.load_table(catalog, name), older_than_ms=2**62, retain_last=self.retain_last)
        return None


@dataclass
class RemoveOrphans(Command_):
    """Files that nothing names go, if they are older than every command that may still be under way."""

    older_than_ms: int

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        remove_orphan_files(tables.load_table(catalog, name), older_than_ms=self.older_than_ms, allow_young=True)
        return None


@dataclass
class Tag(Command_):
    """A tag at the head."""

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        table = tables.load_table(catalog, name)
        head = table.metadata.current_snapshot_id
        assert head is not None
        create_tag(table, f"tag-{self.number}", head)
        return None


@dataclass
class Chosen:
    """A command and what the log says of it before it begins."""

    command: Command_
    told: Told


class Maker:
    """Draws the commands of one writer."""

    def __init__(self, chance: Random, first: int, oldest_ms: Callable[[], int]) -> None:
        self.chance, self.next, self.oldest_ms = chance, first + LAST_DIGIT, oldest_ms

    def chosen(self, kinds: dict[str, int], catalog: Catalog) -> Chosen | None:
        """A command of one of these kinds; `None`: it would need a row, and there is none."""
        kind = self.chance.choices(list(kinds), list(kinds.values()))[0]
        self.next += STEP
        made = getattr(self, f"_{kind}")(self.next, catalog)
        if made is None:
            return None
        command, told = made
        return Chosen(command, {"n": self.next, "kind": kind, **told})

    def _mode(self) -> Mode:
        return self.chance.choice((Mode.COPY_ON_WRITE, Mode.MERGE_ON_READ))

    def _insert(self, n: int, _catalog: Catalog) -> tuple[Command_, Told]:
        p = self.chance.choice(JOURNAL)
        rows = tuple((n * 10 + k, p, n) for k in range(self.chance.choice((1, 2, 3))))
        return Insert(n, rows), {"ids": [row[0] for row in rows]}

    def _transfer(self, n: int, _catalog: Catalog) -> tuple[Command_, Told]:
        key, to = self.chance.sample(ACCOUNTS, 2)
        amount = self.chance.randrange(1, 50)
        command = Transfer(n, Command.MERGE, self._mode(), key, 0, to=to, amount=amount)
        return command, {"from": key, "to": to, "amount": amount}

    def _of_a_row(self, n: int, catalog: Catalog, command: Command) -> tuple[Command_, Told] | None:
        p = self.chance.choice(JOURNAL)
        seen = scanned(tables.load_table(catalog, TABLE), p)
        if seen is None or not seen.rows:
            return None
        key = self.chance.choice(seen.rows[-30:])[2][0]
        return OneRow(n, command, self._mode(), key, p), {"id": key}

    def _delete(self, n: int, catalog: Catalog) -> tuple[Command_, Told] | None:
        return self._of_a_row(n, catalog, Command.DELETE)

    def _update(self, n: int, catalog: Catalog) -> tuple[Command_, Told] | None:
        return self._of_a_row(n, catalog, Command.UPDATE)

    def _merge(self, n: int, _catalog: Catalog) -> tuple[Command_, Told]:
        key = merge_key()
        return OneRow(n, Command.MERGE, self._mode(), key, MERGED), {"id": key}

    def _overwrite(self, n: int, _catalog: Catalog) -> tuple[Command_, Told]:
        p = self.chance.choice(OVERWRITTEN)
        rows = tuple((n * 10 + k, p, n) for k in range(2))
        return OverwritePartition(n, rows), {"p": p, "ids": [row[0] for row in rows]}

    def _empty(self, n: int, _catalog: Catalog) -> tuple[Command_, Told]:
        p = self.chance.choice(OVERWRITTEN)
        return DeletePartition(n, p), {"p": p}

    def _compact(self, n: int, _catalog: Catalog) -> tuple[Command_, Told]:
        p = self.chance.choice((0, 0, 0, LEDGER, *JOURNAL, MERGED))
        return CompactOne(n, p), {"p": p}

    def _manifests(self, n: int, _catalog: Catalog) -> tuple[Command_, Told]:
        return RewriteManifests(n), {}

    def _expire(self, n: int, _catalog: Catalog) -> tuple[Command_, Told]:
        return Expire(n, self.chance.choice((1, 5, 10, 20))), {}

    def _orphans(self, n: int, _catalog: Catalog) -> tuple[Command_, Told]:
        return RemoveOrphans(n, self.oldest_ms()), {}

    def _tag(self, n: int, _catalog: Catalog) -> tuple[Command_, Told]:
        return Tag(n), {"tag": f"tag-{n}"}


def merge_key() -> int:
    """The key that everybody inserts just now: another one four times a second."""
    return MERGE_KEYS + time.monotonic_ns() // 250_000_000 % 800_000


WRITES = {"insert": 30, "transfer": 30, "delete": 8, "update": 8, "merge": 10, "overwrite": 5, "empty": 2, "compact": 7}
UPKEEP = {"compact": 6, "manifests": 1, "expire": 3, "orphans": 2, "tag": 1}
