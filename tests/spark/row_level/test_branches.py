"""Branches by name in every statement, and what a session stages before it is published."""

from __future__ import annotations

from typing import Any

import pytest
from session_settings import setting
from tests.spark.conftest import Rows

from lakeproof.audit.audit import audit
from lakeproof.commit.policy_text import named_policy
from lakeproof.errors import CommitConflict, InvalidInput
from lakeproof.iceberg.committing.commit import FILES_WRITTEN
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark


def create(lake: Lake, name: str, mode: str = "merge-on-read") -> None:
    told = "".join(f"'write.{what}.mode' = '{mode}', " for what in ("delete", "update", "merge"))
    told += "'write.wap.enabled' = 'true', 'lakeproof.max-reruns' = '0'"
    lake.sql(f"create table {name} (id int, v int) using iceberg tblproperties ({told})")
    lake.sql(f"insert into {name} select /*+ coalesce(1) */ cast(id as int), 0 from range(4)")
    lake.sql(f"alter table {name} create branch b")


def nothing_is_wrong(lake: Lake, name: str) -> None:
    """Neither main nor a branch lost anything by the record of the commits, and every file belongs to somebody."""
    found = audit(lake.engine.load(f"default.{name}"), named_policy("lakeproof"), name=name)
    assert found.findings == ()


def meanwhile(lake: Lake, text: str, other: str) -> None:
    """The statement, and what somebody else commits after its files are written."""
    waiting = [other]

    def hook(phase: str) -> None:
        if phase == FILES_WRITTEN and waiting:
            lake.sql(waiting.pop())

    lake.watched(on_phase=hook).sql(text)
    assert not waiting


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_every_statement_changes_the_branch_alone(lake: Lake, name: str, rows: Rows, mode: str) -> None:
    create(lake, name, mode)
    branch = f"{name}.branch_b"
    lake.sql(f"insert into {branch} values (9, 9)")
    lake.sql(f"update {branch} set v = 1 where id = 1")
    lake.sql(f"delete from default.{branch} where id = 0")
    lake.sql(f"merge into {branch} t using (select 2 as id) s on t.id = s.id when matched then update set v = 2")
    expected = [(1, 1), (2, 2), (3, 0), (9, 9)]
    assert rows(f"select * from {branch} order by id") == expected
    assert rows(f"select * from {name} version as of 'b' order by id") == expected
    assert rows(f"select id, v from {name} order by id") == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert rows(f"select count(*) from {name} m join {branch} b on m.id = b.id and m.v <> b.v") == [(2,)]
    lake.sql(f"insert into {branch} select id + 10, v from {branch}")
    assert rows(f"select count(*), max(id) from {branch}") == [(8, 19)]
    lake.sql(f"insert overwrite {branch} select * from {name}")
    assert rows(f"select sum(v), count(*) from {branch}") == [(0, 4)]
    lake.sql(f"truncate table {branch}")
    assert (rows(f"select * from {branch}"), rows(f"select count(*) from {name}")) == ([], [(4,)])
    nothing_is_wrong(lake, name)


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_commit_on_main_is_nobodys_business_on_the_branch(lake: Lake, name: str, rows: Rows, mode: str) -> None:
    create(lake, name, mode)
    branch = f"{name}.branch_b"
    meanwhile(lake, f"update {branch} set v = 1 where id = 1", f"update {name} set v = 5 where id = 1")
    assert rows(f"select v from {branch} where id = 1") == [(1,)]
    assert rows(f"select v from {name} where id = 1") == [(5,)]
    meanwhile(lake, f"delete from {name} where id = 2", f"delete from {branch} where id = 2")
    nothing_is_wrong(lake, name)


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_commit_on_the_branch_itself_is_found(lake: Lake, name: str, rows: Rows, mode: str) -> None:
    create(lake, name, mode)
    branch = f"{name}.branch_b"
    with pytest.raises(CommitConflict):
        meanwhile(lake, f"update {branch} set v = v + 1 where id = 1", f"update {branch} set v = v + 5 where id = 1")
    assert rows(f"select v from {branch} where id = 1") == [(5,)]
    lake.sql(f"alter table {name} set tblproperties ('lakeproof.max-reruns' = '3')")
    meanwhile(lake, f"update {branch} set v = v + 1 where id = 2", f"update {branch} set v = v + 5 where id = 2")
    assert rows(f"select v from {branch} where id = 2") == [(6,)]
    nothing_is_wrong(lake, name)


def test_a_session_with_a_branch_writes_and_reads_it(lake: Lake, name: str, rows: Rows) -> None:
    create(lake, name)
    with setting(lake, "spark.wap.branch", "audit"):
        lake.sql(f"insert into {name} values (7, 7)")
        lake.sql(f"update {name} set v = 8 where id = 7")
        lake.sql(f"delete from {name} where id = 0")
        assert rows(f"select * from {name} order by id") == [(1, 0), (2, 0), (3, 0), (7, 8)]
        lake.sql(f"insert into {name}.branch_b values (11, 0)")
    assert rows(f"select count(*), max(id) from {name}") == [(4, 3)]
    assert rows(f"select count(*), max(id) from {name}.branch_audit") == [(4, 7)]
    assert rows(f"select count(*), max(id) from {name}.branch_b") == [(5, 11)]
    nothing_is_wrong(lake, name)


def test_a_session_with_an_id_stages_its_snapshots(lake: Lake, name: str, rows: Rows) -> None:
    create(lake, name)
    with setting(lake, "spark.wap.id", "w1"):
        lake.sql(f"insert into {name} values (7, 7)")
        assert rows(f"select count(*) from {name}") == [(4,)]
        with setting(lake, "spark.wap.branch", "audit"), pytest.raises(InvalidInput, match="exclude each other"):
            lake.sql(f"insert into {name} values (8, 8)")
    staged = lake.table(name).snapshots()[-1]
    assert staged.summary["wap.id"] == "w1"
    assert rows(f"select count(*) from {name}.snapshot_id_{staged.snapshot_id}") == [(5,)]
    lake.sql(f"insert into {name} values (8, 8)")
    assert rows(f"select id from {name} where id > 3") == [(8,)]
    nothing_is_wrong(lake, name)


def test_a_table_that_does_not_stage_is_written(lake: Lake, name: str, rows: Rows) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    with setting(lake, "spark.wap.branch", "audit"):
        lake.sql(f"insert into {name} values (7)")
    assert rows(f"select id from {name}") == [(7,)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("insert into {t}.branch_nope values (1, 1)", "there is no branch `nope`"),
        ("select * from {t}.tag_nope", "there is no tag `nope`"),
        ("insert into {t}.tag_g values (1, 1)", "the tag `g` cannot be written"),
        ("delete from {t}.tag_g where id = 1", "the tag `g` cannot be written"),
        ("update {t}.branch_g set v = 1", "`g` is a tag"),
        ("alter table {t}.branch_b add column w int", "a branch or tag cannot be altered"),
        ("select * from {t}.snapshot_id_x", "needs a number"),
        ("alter table {t} replace branch nope", "there is no branch `nope`"),
        ("alter table {t} create or replace branch g", "`g` is a tag and no branch"),
        ("alter table {t} create branch c retain 0 days", "above 0"),
        ("alter table {t} create tag c retain 5 moons", "expected DAYS, HOURS or MINUTES"),
        ("alter table {t} create tag c with snapshot retention 5 days", "did not expect more"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(lake: Lake, shared: str, text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        lake.sql(text.format(t=shared)).collect()


def test_refs_are_replaced_and_keep_what_is_not_said(lake: Lake, name: str, rows: Rows) -> None:
    create(lake, name)
    first = lake.table(name).snapshots()[-1].snapshot_id
    lake.sql(f"insert into {name} values (7, 7)")
    lake.sql(f"alter table {name} create or replace branch b retain 7 days with snapshot retention 2 snapshots")
    assert rows(f"select count(*) from {name}.branch_b") == [(5,)]
    lake.sql(f"alter table {name} replace branch b as of version {first} with snapshot retention 3 hours")
    assert rows(f"select count(*) from {name}.branch_b") == [(4,)]
    lake.sql(f"alter table {name} create or replace tag g as of version {first} retain 365 days")
    refs = lake.engine.load(f"default.{name}").metadata.refs
    held = refs["b"]
    assert (held.max_ref_age_ms, held.min_snapshots_to_keep, held.max_snapshot_age_ms) == (604_800_000, 2, 10_800_000)
    assert (refs["g"].snapshot_id, refs["g"].max_ref_age_ms) == (first, 31_536_000_000)
    nothing_is_wrong(lake, name)


@pytest.fixture(scope="module")
def shared(lake: Lake) -> Any:
    create(lake, "with_refs")
    lake.sql("alter table with_refs create tag g")
    return "with_refs"
