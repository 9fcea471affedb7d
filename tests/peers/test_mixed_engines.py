"""A writer of ours and one of Apache Iceberg at once on one live table.

Afterwards the recorded history is walked: every commit of ours must have done to the rows that it found exactly what
its statement says. Where a commit of theirs did not, the audit must name it.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from both_engines import MERGE_ON_READ, Engines, isolation, snapshots_of
from pyiceberg.table import Table

from lakeproof.errors import CommitConflict, CommitRejected
from lakeproof.replay.sql_process import SqlProcess

pytestmark = [pytest.mark.peer, pytest.mark.spark, pytest.mark.slow]
SECONDS = 25
HOT_KEYS = 6
State = Counter[tuple[int, str]]


class Statement(NamedTuple):
    """One command on one key, and what it does to a table."""

    verb: str
    key: int
    value: str = ""

    def sql(self, name: str) -> str:
        return {
            "insert": f"insert into {name} values ({self.key}, '{self.value}')",
            "update": f"update {name} set v = '{self.value}' where k = {self.key}",
            "delete": f"delete from {name} where k = {self.key}",
            "rewrite": f"call {{system}}.rewrite_data_files(table => '{name}')",
        }[self.verb]

    def applied(self, before: State) -> State:
        if self.verb == "rewrite":
            return before
        if self.verb == "insert":
            return before + Counter([(self.key, self.value)])
        others = Counter({row: count for row, count in before.items() if row[0] != self.key})
        if self.verb == "delete":
            return others
        return others + Counter({(self.key, self.value): sum(n for row, n in before.items() if row[0] == self.key)})


class Done(NamedTuple):
    """A statement that was run: the snapshot it made (`None`: nothing to do), the heads before and after, a refusal."""

    statement: Statement
    snapshot: int | None
    head_before: int
    head_after: int
    refused: str = ""


class Keys:
    """Keys that are in the table for certain; `contested` is being deleted right now."""

    def __init__(self) -> None:
        self.known = list(range(HOT_KEYS))
        self.contested: int | None = None

    def chosen(self, chance: random.Random) -> int:
        contested = self.contested
        if contested is not None and chance.random() < 0.5:
            return contested
        return chance.choice(self.known[-HOT_KEYS:])


class Writer(threading.Thread):
    """Runs statements one after the other until the time is over, and notes what became of each."""

    def __init__(self, engines: Engines, engine: SqlProcess, name: str, keys: Keys, seed: int) -> None:
        super().__init__(daemon=True)
        self.engines, self.engine, self.name_, self.keys = engines, engine, name, keys
        self.random, self.first_key = random.Random(seed), 1000 * (seed + 1)
        self.until = time.monotonic() + SECONDS
        self.done: list[Done] = []
        self.failed: list[BaseException] = []
        self.seen: set[int] = set(snapshots_of(engines.table(name)))

    weights = (3, 5, 1, 1)

    @property
    def is_ours(self) -> bool:
        return self.engine.engine == "lakeproof"

    def run(self) -> None:
        try:
            for statement in self.statements():
                self.note(statement, self.executed)
        except BaseException as error:
            self.failed.append(error)

    def statements(self) -> Iterator[Statement]:
        number = 0
        while time.monotonic() < self.until:
            number += 1
            verb = self.random.choices(["insert", "update", "delete", "rewrite"], self.weights)[0]
            key = self.first_key + number if verb == "insert" else self.keys.chosen(self.random)
            yield Statement(verb, key, f"{self.engine.engine} {number}")
            if verb == "insert" and not self.done[-1].refused:
                self.keys.known.append(key)  # only now: a key that comes meanwhile is not for commands to see

    def executed(self, statement: Statement) -> None:
        system = "system" if self.is_ours else "lakeproof.system"
        self.engine.sql(statement.sql(self.name_).format(system=system))

    def note(self, statement: Statement, execute: Callable[[Statement], None]) -> None:
        before, refused = snapshots_of(self.engines.table(self.name_)), ""
        try:
            execute(statement)
        except (CommitConflict, CommitRejected) as error:
            refused = str(error)
        table = self.engines.table(self.name_)
        after = snapshots_of(table)
        mine = [one for one in after if one not in self.seen and made_by_us(table, one) == self.is_ours]
        assert len(mine) <= 1, f"{statement} made {mine}"
        self.seen.update(after)
        self.done.append(Done(statement, mine[0] if mine else None, before[-1], after[-1], refused))


def made_by_us(table: Table, snapshot: int) -> bool:
    found = table.snapshot_by_id(snapshot)
    assert found is not None
    assert found.summary is not None
    return "lakeproof.command-id" in found.summary.additional_properties


class SlowDeletes(Writer):
    """Theirs, whose DELETEs wait in their scan until somebody else has committed."""

    weights = (4, 3, 4, 1)

    def executed(self, statement: Statement) -> None:
        if statement.verb != "delete":
            return super().executed(statement)
        text = f"{statement.sql(self.name_)} and {{gate}}"
        held = self.engines.held(self.engine, text, f"{self.name_}-{len(self.done)}")
        heads = len(snapshots_of(self.engines.table(self.name_)))
        self.keys.contested = statement.key
        patience = time.monotonic() + 4
        while len(snapshots_of(self.engines.table(self.name_))) < heads + 2 and time.monotonic() < patience:
            time.sleep(0.1)
        self.keys.contested = None
        return held.go_on()


def state_at(table: Table, snapshot: int) -> State:
    found = table.scan(snapshot_id=snapshot).to_arrow().to_pylist()
    return Counter((row["k"], row["v"]) for row in found)


def warmed_up(engines: Engines, name: str) -> None:
    """The table; every kind of statement has run once, because the first takes several seconds."""
    engines.theirs.sql(
        f"create table {name} (k int, v string) using iceberg "
        f"tblproperties ('format-version'='2', {MERGE_ON_READ}, {isolation('snapshot')})"
    )
    rows = f"select /*+ coalesce(1) */ cast(id as int), 'start' from range({HOT_KEYS})"
    engines.theirs.sql(f"insert into {name} {rows}")
    for engine, system in ((engines.ours, "system"), (engines.theirs, "lakeproof.system")):
        for verb in ("insert", "update", "delete", "rewrite"):
            engine.sql(Statement(verb, 500, "warm").sql(name).format(system=system))


class History(NamedTuple):
    """The table's snapshots in order, with their rows."""

    order: list[int]
    states: dict[int, State]

    def wrong(self, done: list[Done]) -> set[int]:
        """The snapshots that are not what their statements make of their parents."""
        parents = dict(zip(self.order[1:], self.order, strict=False))
        return {
            one.snapshot
            for one in done
            if one.snapshot and self.states[one.snapshot] != one.statement.applied(self.states[parents[one.snapshot]])
        }

    def had_nothing_to_do(self, one: Done) -> bool:
        """Whether at some moment while it ran the statement would have changed nothing."""
        times = self.order[self.order.index(one.head_before) : self.order.index(one.head_after) + 1]
        return any(one.statement.applied(self.states[at]) == self.states[at] for at in times)


def history_of(table: Table) -> History:
    order = snapshots_of(table)
    return History(order, {snapshot: state_at(table, snapshot) for snapshot in order})


def test_nothing_that_we_commit_is_wrong_and_what_they_do_wrong_is_named(engines: Engines, name: str) -> None:
    warmed_up(engines, name)
    keys = Keys()
    ours, theirs = Writer(engines, engines.ours, name, keys, 1), SlowDeletes(engines, engines.theirs, name, keys, 2)
    for writer in (ours, theirs):
        writer.start()
    for writer in (ours, theirs):
        writer.join(SECONDS + 120)
        assert writer.failed == []
    one_that_surely_overlaps(engines, ours, theirs)

    history = history_of(engines.table(name))
    assert history.wrong(ours.done) == set()
    assert [one for one in ours.done if one.refused] == []
    assert [one for one in ours.done if one.snapshot is None and not history.had_nothing_to_do(one)] == []

    named = {finding["snapshots"][-1] for finding in engines.audited(name)["findings"] if finding["snapshots"]}
    assert named & {one.snapshot for one in ours.done} == set()
    wrong = history.wrong(theirs.done)
    assert wrong
    assert wrong <= named
    engines.rows(name)  # all three readers agree on what is left
    told = {writer.engine.engine: Counter(_word(one) for one in writer.done) for writer in (ours, theirs)}
    print(f"\n{told}; wrong by theirs: {len(wrong)}; named: {len(named)}")


def one_that_surely_overlaps(engines: Engines, ours: Writer, theirs: SlowDeletes) -> None:
    """Our UPDATE of a row that their DELETE has read and not yet deleted."""
    born = Statement("insert", 9000, "born")
    ours.note(born, ours.executed)

    def overlapped(statement: Statement) -> None:
        held = engines.held(theirs.engine, f"{statement.sql(theirs.name_)} and {{gate}}", f"{theirs.name_}-last")
        ours.note(Statement("update", 9000, "again"), ours.executed)
        held.go_on()

    theirs.note(Statement("delete", 9000), overlapped)


def _word(one: Done) -> str:
    return "refused" if one.refused else "nothing to do" if one.snapshot is None else "committed"
