"""SIGKILL of writers through SQL: at every phase, after the swap, before any call, in CTAS, expiry and orphan removal.

`LAKEPROOF_KILLS` says how many writers are killed. A session costs seconds, so one process holds many writers, each
on a table of its own, and all die at once. The statement that was under way has happened, or it has not.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from test_row_level_processes import HERE, MERGE, rows_of

from lakeproof.iceberg.committing.commit import FILES_WRITTEN, METADATA_WRITTEN, PHASES, SCANNED, SWAPPED
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.spark.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]
KILLS = int(os.environ.get("LAKEPROOF_KILLS", "6"))
ROUND = 50
Pairs = list[tuple[int, int]]
START = [(n, 0) for n in range(4)]
EVER = "timestamp '2999-01-01'"
EXPIRE = f"call system.expire_snapshots(table => '{{t}}', older_than => {EVER}, retain_last => 1)"
ORPHANS = f"call system.remove_orphan_files(table => '{{t}}', older_than => {EVER}, allow_young => true)"


class Killed(NamedTuple):
    """A statement, the rows of its table before and after it, and the last of its calls at which it may be killed."""

    statement: str
    after: Pairs
    moments: tuple[str, ...] = PHASES
    before: Pairs | None = START


STATEMENTS = {
    "INSERT": Killed("insert into {t} values (60, 6)", [*START, (60, 6)]),
    "INSERT SELECT": Killed("insert into {t} select 60, count(*) from {t}", [*START, (60, 4)]),
    "INSERT OVERWRITE": Killed("insert overwrite {t} values (60, 6)", [(60, 6)]),
    "DELETE": Killed("delete from {t} where id = 3", START[:3]),
    "UPDATE": Killed("update {t} set v = 1 where id < 2", [(0, 1), (1, 1), (2, 0), (3, 0)]),
    "MERGE": Killed(MERGE, [(0, 0), (1, 5), (2, 0), (3, 0), (50, 5)]),
    "compaction": Killed("call system.rewrite_data_files('{t}')", START),
    "CTAS": Killed("create table {t} using iceberg as select 7 as id, 8 as v", [(7, 8)], before=None),
    "expiry": Killed(EXPIRE, START, ("UPDATE 0", "delete 0", "delete 1", "delete 2")),
    "orphans": Killed(ORPHANS, START, ("delete 0", "delete 1")),
}
FEW = (
    ("CTAS", FILES_WRITTEN),
    ("CTAS", SWAPPED),
    ("INSERT", METADATA_WRITTEN),
    ("expiry", "UPDATE 0"),
    ("expiry", "delete 1"),
    ("orphans", "delete 1"),
)


class Case(NamedTuple):
    """One writer on a table of its own."""

    name: str
    moment: str
    table: str

    @property
    def killed(self) -> Killed:
        return STATEMENTS[self.name]


def rounds() -> list[list[tuple[str, str]]]:
    """Every statement at every moment first, then before calls that a seed chooses."""
    if len(FEW) >= KILLS:
        return [list(FEW[:KILLS])]
    chosen = [(name, moment) for name, killed in STATEMENTS.items() for moment in killed.moments]
    chance = random.Random(KILLS)
    while len(chosen) < KILLS:
        chosen.append((chance.choice(list(STATEMENTS)), f"call {chance.randrange(25)}"))
    return [chosen[at : at + ROUND] for at in range(0, len(chosen), ROUND)]


def create(lake: Lake, table: str) -> None:
    """Two data files, a delete file, an expired row, and files that nothing names."""
    modes = ", ".join(f"'write.{what}.mode' = 'merge-on-read'" for what in ("delete", "update", "merge"))
    lake.sql(f"create table {table} (id int, v int) using iceberg tblproperties ({modes})")
    for first, last in ((0, 2), (2, 5)):
        lake.sql(f"insert into {table} select /*+ coalesce(1) */ cast(id as int), 0 from range({first}, {last})")
    lake.sql(f"delete from {table} where id = 4")
    folder = Path(lake.engine.load(f"default.{table}").location().removeprefix("file://"))
    for number in range(3):
        (folder / "data" / f"orphan-{number}.parquet").write_bytes(b"nobody names this")


def killed_while_standing(cases: list[Case], warehouse: Path) -> list[str]:
    """Where the writers stood when their process and its JVM were killed."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "killed_at_calls.py"), f"sqlite:///{warehouse}/catalog.db", str(warehouse)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a group of its own: Python and the JVM die by one signal
    )
    assert process.stdin is not None
    assert process.stdout is not None
    told = [(case.killed.statement.format(t=case.table), case.moment) for case in cases]
    print(json.dumps(told), file=process.stdin, flush=True)
    stood = process.stdout.readline()
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    return list(json.loads(stood))


def verify(lake: Lake, case: Case, stood: str) -> None:
    """The statement has happened or it has not; nothing of it is in the way of the next."""
    killed = case.killed
    there = lake.engine.find(f"default.{case.table}")
    found = None if there is None else rows_of(lake, case.table)
    if stood in (SCANNED, FILES_WRITTEN, METADATA_WRITTEN):
        assert found == killed.before, case
    elif stood in (SWAPPED, "finished"):
        assert found == killed.after, case
    else:
        assert stood == case.moment, (case, stood)
        assert found in (killed.before, killed.after), case
    if found == killed.before and found != killed.after:
        lake.sql(killed.statement.format(t=case.table))
    table = lake.engine.load(f"default.{case.table}")
    remove_orphan_files(table, older_than_ms=2**62, allow_young=True)
    assert rows_of(lake, case.table) == killed.after, case
    for snapshot in table.metadata.snapshots:
        table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
    assert remove_orphan_files(table, older_than_ms=2**62, dry_run=True).files == ()
    lake.sql(f"drop table {case.table} purge")


@pytest.mark.parametrize("number", range(len(rounds())))
def test_killed_anywhere(lake: Lake, name: str, warehouse: Path, number: int) -> None:
    cases = [Case(*told, f"{name}_{at}") for at, told in enumerate(rounds()[number])]
    for case in cases:
        if case.killed.before is not None:
            create(lake, case.table)
    stood = killed_while_standing(cases, warehouse)
    assert [where for where in stood if "Error" in where or where == "lost"] == []
    for case, where in zip(cases, stood, strict=True):
        verify(lake, case, where)


def test_there_are_as_many_kills_as_were_asked_for() -> None:
    assert sum(len(each) for each in rounds()) >= KILLS
    assert {moment for _, moment in FEW} >= {FILES_WRITTEN, METADATA_WRITTEN, SWAPPED}
