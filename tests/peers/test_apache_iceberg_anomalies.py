"""What Apache Iceberg's own Spark runtime lets through, for real, and what Lakeproof does in the same place.

The slow command stands still at a gate in its WHERE, after it has read its snapshot; the quick one commits meanwhile.
"""

from __future__ import annotations

from typing import Any

import pytest
from both_engines import MERGE_ON_READ, Engines, isolation, snapshots_of

from lakeproof.errors import CommitConflict
from lakeproof.replay.sql_process import SqlProcess

pytestmark = [pytest.mark.peer, pytest.mark.spark]
ENGINES = ("theirs", "ours")


def engine(engines: Engines, word: str) -> SqlProcess:
    return engines.theirs if word == "theirs" else engines.ours


def ten_rows(engines: Engines, name: str, level: str) -> None:
    engines.theirs.sql(
        f"create table {name} (id int, v string) using iceberg "
        f"tblproperties ('format-version'='2', {MERGE_ON_READ}, {isolation(level)})"
    )
    engines.theirs.sql(f"insert into {name} select /*+ coalesce(1) */ cast(id as int), 'a' from range(10)")


def findings(found: dict[str, Any]) -> list[tuple[str, list[int]]]:
    return [(one["kind"], one["snapshots"]) for one in found["findings"]]


class TestUndelete:
    """A DELETE that has not seen an UPDATE of its row."""

    @pytest.mark.parametrize("updates", ENGINES)
    def test_their_delete_commits_and_the_row_lives_on(self, engines: Engines, name: str, updates: str) -> None:
        ten_rows(engines, name, "snapshot")
        delete = engines.held(engines.theirs, f"delete from {name} where id = 5 and {{gate}}", name)
        engine(engines, updates).sql(f"update {name} set v = 'w2' where id = 5")
        delete.go_on()
        rows = engines.rows(name)
        assert len(rows) == 10  # either serial order leaves nine
        assert (5, "w2") in rows
        _, update, deleted = snapshots_of(engines.table(name))
        found = engines.audited(name)
        assert findings(found) == [("undelete", [update, deleted])]
        assert found["findings"][0]["check"] == "target_rows"
        assert found["findings"][0]["note"] == (
            "its read snapshot is not recorded; it cannot be newer than the one named here"
        )
        assert findings(engines.audited(name, "--policy", "iceberg-spark")) == []
        assert findings(engines.audited(name, "--policy", "iceberg-spark-fixed")) == [("undelete", [update, deleted])]

    def test_it_is_found_among_rows_that_were_deleted_before(self, engines: Engines, name: str) -> None:
        """Their new delete file then holds the older deletes of its data file too, and takes that one's place."""
        ten_rows(engines, name, "snapshot")
        engines.theirs.sql(f"delete from {name} where id = 8")
        delete = engines.held(engines.theirs, f"delete from {name} where id = 5 and {{gate}}", name)
        engines.theirs.sql(f"update {name} set v = 'w2' where id = 5")
        delete.go_on()
        assert (5, "w2") in engines.rows(name)
        *_, update, deleted = snapshots_of(engines.table(name))
        assert findings(engines.audited(name)) == [("undelete", [update, deleted])]

    @pytest.mark.parametrize("updates", ENGINES)
    def test_our_delete_runs_again_and_the_row_is_gone(self, engines: Engines, name: str, updates: str) -> None:
        ten_rows(engines, name, "snapshot")
        delete = engines.held(engines.ours, f"delete from {name} where id = 5 and {{gate}}", name)
        engine(engines, updates).sql(f"update {name} set v = 'w2' where id = 5")
        delete.go_on()
        assert [row[0] for row in engines.rows(name)] == [0, 1, 2, 3, 4, 6, 7, 8, 9]
        assert findings(engines.audited(name)) == []

    def test_at_serializable_they_refuse_it(self, engines: Engines, name: str) -> None:
        ten_rows(engines, name, "serializable")
        delete = engines.held(engines.theirs, f"delete from {name} where id = 5 and {{gate}}", name)
        engines.theirs.sql(f"update {name} set v = 'w2' where id = 5")
        with pytest.raises(CommitConflict, match="conflicting"):
            delete.go_on()
        assert (5, "w2") in engines.rows(name)
        assert findings(engines.audited(name)) == []


def test_rows_that_nobody_else_touched(engines: Engines, name: str) -> None:
    """Two UPDATEs of different rows of one file: theirs aborts, ours commits."""
    ten_rows(engines, name, "snapshot")
    for slow, row in ((engines.theirs, 1), (engines.ours, 2)):
        update = engines.held(slow, f"update {name} set v = 'slow' where id = {row} and {{gate}}", f"{name}-{row}")
        engines.theirs.sql(f"update {name} set v = 'quick' where id = {row + 5}")
        if slow is engines.theirs:
            with pytest.raises(CommitConflict, match="Found new conflicting delete files"):
                update.go_on()
        else:
            update.go_on()
    changed = {row[0]: row[1] for row in engines.rows(name) if row[1] != "a"}
    assert changed == {2: "slow", 6: "quick", 7: "quick"}
    assert findings(engines.audited(name)) == []


class TestWriteSkewAtSerializable:
    """Two DELETEs, each only while the other's row is there: at least one row must stay."""

    def two_rows(self, engines: Engines, name: str, mode: str) -> None:
        properties = f"'format-version'='2', {MERGE_ON_READ}, {isolation('serializable')}"
        engines.theirs.sql(
            f"create table {name} (k int, v string) using iceberg partitioned by (k) "
            f"tblproperties ({properties.replace('merge-on-read', mode)})"
        )
        engines.theirs.sql(f"insert into {name} values (0, 'a'), (1, 'b')")

    def skew(self, engines: Engines, name: str, slow: SqlProcess, quick: SqlProcess) -> None:
        other = f"exists (select 1 from {name} x where x.k = "
        held = engines.held(slow, f"delete from {name} where k = 0 and {{gate}} and {other}1)", name)
        quick.sql(f"delete from {name} where k = 1 and {other}0)")
        held.go_on()

    @pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
    def test_theirs_leaves_the_table_empty(self, engines: Engines, name: str, mode: str) -> None:
        self.two_rows(engines, name, mode)
        self.skew(engines, name, engines.theirs, engines.theirs)
        assert engines.rows(name) == []
        # What a command read and did not write is recorded nowhere, so nobody can find this one afterwards.
        found = engines.audited(name)
        assert findings(found) == []
        assert found["assumed"] == 2

    @pytest.mark.parametrize("quick", ENGINES)
    @pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
    def test_ours_looks_again_and_keeps_the_row(self, engines: Engines, name: str, mode: str, quick: str) -> None:
        self.two_rows(engines, name, mode)
        self.skew(engines, name, engines.ours, engine(engines, quick))
        assert engines.rows(name) == [(0, "a")]


def test_two_inserts_of_a_sum(engines: Engines, name: str) -> None:
    """`INSERT … SELECT sum(v)` twice at once: an append validates nothing there; here it reads again."""
    outcomes = {}
    for word in ENGINES:
        table, slow = f"{name}_{word}", engine(engines, word)
        engines.theirs.sql(
            f"create table {table} (k int, v bigint) using iceberg "
            f"tblproperties ('format-version'='2', {isolation('serializable')})"
        )
        engines.theirs.sql(f"insert into {table} values (1, 10), (2, 20)")
        held = engines.held(slow, f"insert into {table} select 99, sum(v) from {table} where {{gate}}", table)
        engines.theirs.sql(f"insert into {table} select 98, sum(v) from {table}")
        held.go_on()
        outcomes[word] = {row[0]: row[1] for row in engines.rows(table)}
    assert outcomes["theirs"] == {1: 10, 2: 20, 98: 30, 99: 30}  # no serial order gives the same sum twice
    assert outcomes["ours"] == {1: 10, 2: 20, 98: 30, 99: 60}
