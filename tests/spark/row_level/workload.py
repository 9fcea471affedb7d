"""Random commands of several writers, each with its meaning in Python, and the check that a history has a serial order.

Every commit must have done to the snapshot before it exactly what its command means. So commit order is a serial order
that explains every snapshot anybody may have read: strict serializability. Each snapshot says its command itself.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pyiceberg.table import Table

from lakeproof.spark.lake import Lake

State = dict[int, int]
KEYS = 12
SUMMARY = "workload.command"
KINDS = ("update", "update range", "delete", "guarded delete", "merge", "insert", "insert select", "compaction")
MODES = "".join(f"'write.{what}.mode' = '{{{what}}}', " for what in ("delete", "update", "merge"))


class Command(NamedTuple):
    """One command: its kind and the keys it is about."""

    kind: str
    key: int
    other: int
    new: int

    def text(self, name: str) -> str:
        """The SQL."""
        key, other, new = self.key, self.other, self.new
        return {
            "update": f"update {name} set v = v + 1 where k = {key}",
            "update range": f"update {name} set v = v + 10 where k >= {key} and k < {key + 3}",
            "delete": f"delete from {name} where k = {key}",
            "guarded delete": f"delete from {name} where k = {key} "
            f"and exists (select 1 from {name} x where x.k = {other})",
            "merge": f"merge into {name} t using (values ({key}, 1), ({KEYS + other}, 2)) as s(k, v) on t.k = s.k "
            "when matched then update set v = t.v + s.v when not matched then insert *",
            "insert": f"insert into {name} values ({new}, 0)",
            "insert select": f"insert into {name} select {new}, coalesce(sum(v), 0) from {name} where k < {KEYS}",
            "compaction": f"call system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",
        }[self.kind]

    def meaning(self, rows: State) -> State:
        """What it does to the rows."""
        key, other, new = self.key, self.other, self.new
        match self.kind:
            case "update":
                return {k: v + 1 if k == key else v for k, v in rows.items()}
            case "update range":
                return {k: v + 10 if key <= k < key + 3 else v for k, v in rows.items()}
            case "delete":
                return {k: v for k, v in rows.items() if k != key}
            case "guarded delete":
                return {k: v for k, v in rows.items() if k != key or other not in rows}
            case "merge":
                return rows | {key: rows.get(key, 0) + 1, KEYS + other: rows.get(KEYS + other, 0) + 2}
            case "insert":
                return rows | {new: 0}
            case "insert select":
                return rows | {new: sum(v for k, v in rows.items() if k < KEYS)}
        return rows


def commands(seed: int) -> Iterator[Command]:
    """One kind after the other, each writer from another one on; a new key is one that nobody else will take."""
    dice = random.Random(seed)
    for number in itertools.count(seed):
        kind = KINDS[number * 3 % len(KINDS)]
        yield Command(kind, dice.randrange(KEYS), dice.randrange(KEYS), dice.randrange(1_000, 2**31 - 1))


def create(lake: Lake, name: str, *, update: str = "merge-on-read", delete: str = "merge-on-read") -> None:
    """A table of the keys, everything serializable."""
    told = MODES.format(update=update, delete=delete, merge=update)
    lake.sql(
        f"create table {name} (k int, v bigint) using iceberg tblproperties ({told}"
        "'lakeproof.max-reruns' = '50', 'commit.retry.min-wait-ms' = '5')"
    )
    lake.sql(f"insert into {name} select cast(id as int), 0 from range({KEYS})")


class Writers:
    """Threads that run commands on one table until the time is over, and each kind of them at least once."""

    def __init__(self, lake: Lake, name: str) -> None:
        self.lake, self.name = lake, name
        self.commands, self.conflicts = 0, list[Any]()
        self.errors: list[BaseException] = []

    def run(self, seeds: list[int], seconds: float) -> None:
        """All at once."""
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=self._write, args=(seed, until)) for seed in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _write(self, seed: int, until: float) -> None:
        try:
            for number, one in enumerate(commands(seed)):
                if time.monotonic() > until and number >= len(KINDS):
                    break
                said = {SUMMARY: json.dumps(one)}
                self.lake.watched(on_rerun=self.conflicts.append, summary=said).sql(one.text(self.name))
                self.commands += 1
        except BaseException as error:
            self.errors.append(error)


def check_history(table: Table, read: Callable[[int], list[tuple[int, int]]]) -> dict[str, int]:
    """How many commits of each kind there are; a commit that did something else than it means fails."""
    counts: dict[str, int] = {}
    before: State = {}
    for snapshot in sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0):
        found = read(snapshot.snapshot_id)
        after = dict(found)
        assert len(after) == len(found), f"a key is twice in snapshot {snapshot.snapshot_id}"
        assert snapshot.summary is not None
        said = snapshot.summary.additional_properties.get(SUMMARY)
        if said is not None:
            one = Command(*json.loads(said))
            assert after == one.meaning(before), f"{one} did something else in snapshot {snapshot.snapshot_id}"
            counts[one.kind] = counts.get(one.kind, 0) + 1
        before = after
    return counts


def lost_swaps(table: Table) -> int:
    """How many swaps the commits of a table lost before they won, as its snapshots tell."""
    said = [snapshot.summary.additional_properties for snapshot in table.metadata.snapshots if snapshot.summary]
    return sum(int(one.get("lakeproof.retries", 0)) for one in said)


def main() -> None:
    """A writer in a process of its own: catalog, warehouse, table, seed, seconds."""
    from lakeproof.spark.jvm.session import build_session
    from lakeproof.spark.lake import connect

    catalog, warehouse, name, seed, seconds = sys.argv[1:]
    conf = {"spark.sql.shuffle.partitions": "1", "spark.default.parallelism": "1"}
    session = build_session(warehouse, master="local[1]", quick=True, conf=conf)
    writers = Writers(connect(session, catalog=catalog, warehouse=warehouse), name)
    writers.run([int(seed)], float(seconds))
    for error in writers.errors:
        print(error, file=sys.stderr)
    print(json.dumps({"commands": writers.commands, "reruns": len(writers.conflicts)}))
    session.stop()
    sys.exit(1 if writers.errors else 0)


if __name__ == "__main__":
    main()
