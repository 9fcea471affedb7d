"""Writers that never touch the same row: how many of their commands are refused, by which check, and what it took.

Every abort here is a false one. Each side runs the same statements; afterwards its table must hold exactly what the
commands that it committed make of the rows.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

from pyspark import InheritableThread

from benchmarks.harness import Line, Number, Timing, turned
from benchmarks.results import Result, Stopwatch
from benchmarks.session import ICEBERG, OURS, Sides, all_sides
from lakeproof.commit import Conflict
from lakeproof.errors import CommitConflict, CommitRejected

TITLE = (
    "Writers in threads of one session on one table, {each} commands each; no two of them touch the same row, so every "
    "abort is a false one. Default retries, format version 2 unless a line says v3. 'Rows right': the table holds "
    "exactly what the committed commands make of it."
)
EACH = {False: 5, True: 20}
SNAPSHOT, SERIALIZABLE = "snapshot", "serializable"
MERGE_ON_READ, COPY_ON_WRITE = "merge-on-read", "copy-on-write"
COLUMNS = "id bigint, owner int, day int, quantity int"


class Layout(NamedTuple):
    """How the rows lie: the partition column (or none), and whether each owner's rows of a partition are a file."""

    name: str
    partition: str = ""
    sorted_by_owner: bool = False


ONE_FILE = Layout("one file")
ONE_PARTITION = Layout("one partition", "day")
BY_OWNER = Layout("a partition for each writer", "owner")
BY_TIME = Layout("partitioned by time", "day")
BY_TIME_SORTED = Layout("partitioned by time, sorted by writer", "day", sorted_by_owner=True)


class Case(NamedTuple):
    """One workload on one kind of table."""

    name: str
    text: str
    layout: Layout
    mode: str
    isolation: str
    writers: int = 4
    compaction: bool = False
    version: int = 2

    @property
    def deletes(self) -> bool:
        """Whether the rows go; else their quantity grows by one."""
        return self.text.startswith("delete")

    @property
    def title(self) -> str:
        """The name in the table."""
        version = "" if self.version == 2 else f", v{self.version}"
        return f"{self.name}, {self.mode}, {self.isolation}, {self.writers} writers{version}"


UPDATE = "update {table} set quantity = quantity + 1 where id = {id}"
OF_OWNER = "update {table} set quantity = quantity + 1 where owner = {owner} and day = 1 and id = {id}"
DELETE = "delete from {table} where id = {id}"
WORKLOADS = (
    ("UPDATE of other rows of one partition", UPDATE, ONE_PARTITION),
    ("UPDATE by id, a partition each", UPDATE, BY_OWNER),
    ("DELETE of other rows of one file", DELETE, ONE_FILE),
)
UPDATE_OF_FILE = ("UPDATE of other rows of one file", UPDATE, ONE_FILE)
VERSION_THREE = tuple(
    Case(*workload, MERGE_ON_READ, SNAPSHOT, writers, version=3)
    for workload, writers in product((WORKLOADS[2], UPDATE_OF_FILE), (4, 8))
)
LAYOUTS = (BY_OWNER, BY_TIME, BY_TIME_SORTED)
CUT = (
    Case(*WORKLOADS[0], MERGE_ON_READ, SNAPSHOT),
    Case(*WORKLOADS[1], MERGE_ON_READ, SERIALIZABLE),
    Case(*WORKLOADS[2], COPY_ON_WRITE, SNAPSHOT, writers=8),
    Case("DELETE beside compaction", DELETE, ONE_FILE, MERGE_ON_READ, SNAPSHOT, compaction=True),
    *(Case(f"UPDATE, {one.name}", OF_OWNER, one, MERGE_ON_READ, SERIALIZABLE) for one in LAYOUTS),
    *VERSION_THREE,
)


def cases(*, full: bool) -> Iterator[Case]:
    """All of them, or a cut."""
    if not full:
        yield from CUT
        return
    modes, levels = (MERGE_ON_READ, COPY_ON_WRITE), (SNAPSHOT, SERIALIZABLE)
    for workload, mode, level, writers in product(WORKLOADS, modes, levels, (4, 8)):
        yield Case(*workload, mode, level, writers)
    for mode, level in product(modes, levels):
        yield Case("DELETE beside compaction", DELETE, ONE_FILE, mode, level, compaction=True)
    yield from VERSION_THREE
    for mode in modes:
        yield Case("DELETE beside compaction", DELETE, ONE_FILE, mode, SNAPSHOT, compaction=True, version=3)
    for layout, mode, level in product(LAYOUTS, modes, levels):
        yield Case(f"UPDATE, {layout.name}", OF_OWNER, layout, mode, level)


def run(*, full: bool) -> Result:
    """Every case, on each side in turn."""
    watch = Stopwatch("aborts", TITLE.format(each=EACH[full]), full=full, plotted="committed")
    with all_sides() as sides:
        lines = []
        for number, case in enumerate(cases(full=full)):
            present = [OURS, ICEBERG] if sides.peer else [OURS]
            taken = {side: measured(sides, side, case, f"a{number}", EACH[full]) for side in turned(present, number)}
            lines += [taken[side] for side in present]
        return watch.result(lines, (*sides.notes, *NOTES))


NOTES = (
    "Aborts are counted by the check that refused: `no_new_delete_files` is 'Found new conflicting delete files' of "
    "Apache Iceberg, `added_data_files` 'Found conflicting files', `missing_delete_paths` 'Missing required files to "
    "delete', `no_new_deletes_for_data_files` 'found new … delete for replaced data file', `added_vectors` 'Found "
    "concurrently added DV'; `lost swap` is a commit that was given up after too many of them.",
    "A re-run reads the head and does the work again; a lost swap costs the validation and the metadata only. Apache "
    "Iceberg does not tell how many swaps its commits lost.",
)


class Counts:
    """What became of the commands of one case."""

    def __init__(self) -> None:
        self.done: set[int] = set()
        self.aborts: Counter[str] = Counter()
        self.reruns: Counter[str] = Counter()
        self.compactions, self.lost_compactions = 0, Counter[str]()
        self.replans = 0
        self.broken: list[Exception] = []


def measured(sides: Sides, side: str, case: Case, name: str, each: int) -> Line:
    """One side of one case."""
    table = name if side == OURS else f"peer.d.{name}"
    sql: Callable[[str], object] = sides.lake.sql if side == OURS else sides.sql
    prepare(sql, table, case, each)
    counts = Counts()
    seconds = written(sides, side, case, table, each, counts)
    if counts.broken:
        raise counts.broken[0]
    tried = case.writers * each
    more: dict[str, Number | str] = {
        "commands": tried,
        "committed": len(counts.done),
        "aborts": worded(counts.aborts),
        "re-runs": counts.reruns.total() if side == OURS else "–",
        "lost swaps": lost_swaps(sides, name) if side == OURS else "–",
        "compactions": compactions(counts) if case.compaction else "–",
        "rows right": "yes" if rows_are_right(sides, table, side, case, each, counts) else "NO",
    }
    return Line(case.title, side, side, (Timing(seconds),), more)  # no ratio: what was refused took no time


def worded(aborts: Counter[str]) -> str:
    """How many, and by which check."""
    return ", ".join(f"{count} {check}" for check, count in aborts.most_common()) or "0"


def compactions(counts: Counts) -> str:
    """Landed of tried; planned again, where that happened."""
    lost = counts.lost_compactions.total()
    told = f"{counts.compactions - lost} of {counts.compactions}"
    told += f" ({worded(counts.lost_compactions)})" if lost else ""
    return told + (f", {counts.replans} planned again" if counts.replans else "")


def prepare(sql: Callable[[str], object], table: str, case: Case, each: int) -> None:
    """The rows, one for each command and one more, and a first command, so that nobody's is cold."""
    commands = ("delete", "update", "merge")
    told = [f"'write.{command}.mode'='{case.mode}'" for command in commands]
    told += [f"'write.{command}.isolation-level'='{case.isolation}'" for command in commands]
    by = f"partitioned by ({case.layout.partition})" if case.layout.partition else ""
    properties = ", ".join([*told, f"'format-version'='{case.version}'", "'write.distribution-mode'='none'"])
    sql(f"create table {table} ({COLUMNS}) using iceberg {by} tblproperties ({properties})")
    rows = f"select cast(id as bigint), cast(id div {each} as int) as owner, 1, 0 from range(0, {{}}, 1, 1)"
    count = case.writers * each
    if case.layout.sorted_by_owner:  # an INSERT each: so a file each
        for owner in range(case.writers):
            sql(f"insert into {table} {rows.format(count)} where id div {each} = {owner}")
        sql(f"insert into {table} values ({count}, {case.writers}, 1, 0)")
    else:
        sql(f"insert into {table} {rows.format(count + 1)}")
    sql(case.text.format(table=table, id=count, owner=case.writers))


def written(sides: Sides, side: str, case: Case, table: str, each: int, counts: Counts) -> float:
    """All writers at once, and the compaction beside them until they have ended; the seconds that the writers took."""
    over = threading.Event()

    def runner(on_rerun: Callable[[Conflict], None]) -> Callable[[str], object]:
        return sides.lake.watched(on_rerun=on_rerun).sql if side == OURS else sides.sql

    def writer(number: int) -> None:
        sql = runner(lambda conflict: counts.reruns.update([conflict.check]))
        for at in range(number * each, (number + 1) * each):
            reason = refused(lambda at=at: sql(case.text.format(table=table, id=at, owner=number)), counts)  # type: ignore[misc]
            if reason is None:
                counts.done.add(at)
            else:
                counts.aborts[reason] += 1

    def compactor() -> None:
        def again(_: object) -> None:
            counts.replans += 1

        sql = runner(again)
        while not over.is_set():
            counts.compactions += 1
            reason = refused(lambda: sql(compaction_of(side, table)), counts)
            if reason is not None:
                counts.lost_compactions[reason] += 1

    threads = [InheritableThread(target=writer, args=(number,)) for number in range(case.writers)]
    beside = [InheritableThread(target=compactor)] if case.compaction else []
    began = time.perf_counter()
    for thread in (*threads, *beside):
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    over.set()
    for thread in beside:
        thread.join()
    return seconds


def compaction_of(side: str, table: str) -> str:
    """The CALL that rewrites every file."""
    system, _, name = table.rpartition("peer.")
    where = "system" if side == OURS else "peer.system"
    return f"call {where}.rewrite_data_files(table => '{name or system}', options => map('rewrite-all', 'true'))"


def refused(run: Callable[[], object], counts: Counts) -> str | None:
    """Why the statement was not committed; `None`: it was. Anything but a refusal is a mistake of the benchmark."""
    try:
        run()
    except Exception as error:
        reason = check_of(error)
        if reason is None:
            counts.broken.append(error)
        return reason or "broken"
    return None


SAID = {
    "Found new conflicting delete files": "no_new_delete_files",
    "Found conflicting files": "added_data_files",
    "Missing required files to delete": "missing_delete_paths",
    r"found new .*delete for replaced data file": "no_new_deletes_for_data_files",
    "Cannot commit, missing data files": "data_files_exist",
    "Found concurrently added DV": "added_vectors",
    "Runtime file filtering is not possible": "runtime filtering",
    "CommitFailedException|Cannot commit changes based on stale": "lost swap",
}
"""What Apache Iceberg says, and which check that is."""


def check_of(error: Exception) -> str | None:
    """The check that refused a commit; `None`: it was not refused."""
    if isinstance(error, CommitConflict):
        return str(error.conflict.check) if error.conflict is not None else "conflict"
    if isinstance(error, CommitRejected):
        return "lost swap"
    text = str(error)
    found = [check for said, check in SAID.items() if re.search(said, text)]
    return found[0] if found else "another check" if "ValidationException" in text else None


def lost_swaps(sides: Sides, name: str) -> int:
    """How many swaps the commits of a table of ours lost, as its snapshots tell."""
    return sum(int(one.summary.get("lakeproof.retries", 0)) for one in sides.lake.table(name).snapshots())


def rows_are_right(sides: Sides, table: str, side: str, case: Case, each: int, counts: Counts) -> bool:
    """Whether the table holds what the committed commands make of the rows."""
    query = f"select id, quantity from {table}"
    found = sorted(tuple(row) for row in (sides.lake.sql if side == OURS else sides.sql)(query).collect())
    last = case.writers * each  # was changed before anybody began
    changed = counts.done | {last}
    if case.deletes:
        return found == [(at, 0) for at in range(last + 1) if at not in changed]
    return found == [(at, int(at in changed)) for at in range(last + 1)]
