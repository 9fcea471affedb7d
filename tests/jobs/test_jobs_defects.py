"""What an examination of the first version found, one test each: a wrong "holds", a traceback, a statement misread."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

import lakeproof
from lakeproof.checker import Verdict
from lakeproof.commit import POLICIES
from lakeproof.errors import InvalidInput
from lakeproof.jobs.answers import answer_jobs
from lakeproof.jobs.preparing import first_tables, prepare_jobs
from lakeproof.jobs.reading import Jobs, read_jobs
from lakeproof.jobs.searching import Clock, Limits
from lakeproof.jobs.text import taken_apart

MERGE_ON_READ = """using iceberg {partitioned}tblproperties (
  'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read',
  'write.delete.isolation-level'='{level}', 'write.update.isolation-level'='{level}',
  'write.merge.isolation-level'='{level}', 'write.insert.isolation-level'='{level}');
"""


def table(columns: str, name: str = "t", *, level: str = "snapshot", partitioned: str = "") -> str:
    by = f"partitioned by ({partitioned}) " if partitioned else ""
    return f"create table {name} ({columns}) " + MERGE_ON_READ.format(level=level, partitioned=by)


def jobs(text: str) -> Jobs:
    return read_jobs(taken_apart(text, name="jobs.sql"))


def verdict(text: str, policy: str = "iceberg-spark", seconds: float = 60) -> Verdict:
    return answer_jobs(jobs(text), POLICIES[policy], limits=Limits(Clock(seconds)), advice=False)


def two(first: str, second: str) -> str:
    """Two jobs of a statement each."""
    return f"-- job: one\n{first};\n-- job: two\n{second};\n"


def refused(text: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as error:
        jobs(text)
    return error.value


def test_j1_a_condition_on_the_source_is_asked_of_the_source() -> None:
    found = verdict(
        table("id int, status string")
        + """-- job: stream
merge into t using changes s on t.id = s.id when matched and s.status = 'done' then update set status = 'closed';
-- job: privacy
delete from t where id = 1;
"""
    )
    assert found.verdict == "violated"


def test_j2_all_rows_are_tried_not_the_first_six() -> None:
    found = verdict(
        table("a int, b int, c int, v int")
        + """-- job: one
update t set v = 9 where a = 1 and b = 7 and c = 3;
-- job: two
delete from t where a = 1 and b = 7 and c = 3;
"""
    )
    assert found.verdict == "violated"
    assert found.more["first_rows"][0]["rows"][0][:3] == [1, 7, 3]


@pytest.mark.parametrize("kind", ["double", "decimal(9,2)", "float"])
def test_j3_there_is_a_value_between_any_two_numbers(kind: str) -> None:
    body = two("update t set v = 2 where c > 0.5 and c < 0.7", "delete from t where c > 0.5 and c < 0.7")
    found = verdict(table(f"c {kind}, v int") + body)
    assert found.verdict == "violated"
    [value, _] = found.more["first_rows"][0]["rows"][0]
    assert 0.5 < float(value) < 0.7


def test_j3_there_is_none_where_the_type_has_none() -> None:
    body = "-- job: one\nupdate t set v = 2 where c > 1 and c < 2;\n-- job: two\ndelete from t where c > 1 and c < 2;\n"
    found = verdict(table("c int, v int") + body)
    assert found.verdict == "unknown"
    assert any("one never commits: it finds no row to change" in note for note in found.notes)


def test_j4_null_is_a_witness() -> None:
    body = "-- job: one\nupdate t set v = 2 where name is null;\n-- job: two\ndelete from t where name is null;\n"
    found = verdict(table("name string, v int") + body)
    assert found.verdict == "violated"
    assert found.more["first_rows"][0]["rows"][0][0] is None


def test_j5_a_condition_on_known_rows_is_computed() -> None:
    body = """insert into t values ('JACK', 1);
-- job: one
update t set v = 2 where not (lower(name) = 'zzz');
-- job: two
delete from t where not (lower(name) = 'zzz');
"""
    assert verdict(table("name string, v int") + body).verdict == "violated"
    never = body.replace("not (lower(name) = 'zzz')", "lower(name) = 'zzz'")
    assert verdict(table("name string, v int") + never).verdict == "unknown"  # neither job finds a row


def test_j6_an_unknown_source_beside_a_delete() -> None:
    body = """-- job: stream
merge into t using changes s on t.id = s.id and t.kind = s.kind
  when matched then update set a = s.a, b = s.b, kind = s.kind when not matched then insert *;
-- job: privacy
delete from t where id = 3 and kind = 'x' and a > 5;
"""
    assert verdict(table("id int, kind string, a int, b int") + body).verdict == "violated"


@pytest.mark.parametrize(
    ("subquery", "acts"),
    [
        pytest.param("exists (select count(*) from t x where x.id = 9)", True, id="a row of a count is a row"),
        pytest.param("exists (select 1 from t x where x.id = t.id and x.v = 5)", False, id="correlated"),
        pytest.param("exists (select distinct id from t x where x.id = 9)", False, id="DISTINCT"),
        pytest.param("id in (select id from t x where x.v = 5)", False, id="IN"),
        pytest.param("(select count(v) from t x) = 0", False, id="count of a column leaves NULL out"),
        pytest.param("(select count(distinct v) from t x) = 1", True, id="count of distinct values"),
    ],
)
def test_j7_subqueries_are_computed(subquery: str, acts: bool) -> None:
    one_row = "insert into t values (1, 0);\n"
    body = one_row + two(f"delete from t where {subquery}", "update t set v = 1 where id = 1")
    read = jobs(table("id int, v int") + body)
    assert read.notes == ()
    found = verdict(table("id int, v int") + body)
    assert found.verdict == ("violated" if acts else "unknown")


@pytest.mark.parametrize(
    "subquery", ["(select v from t x limit 1) = 1", "id in (select v from t x group by v having v > 1)"]
)
def test_j7_what_is_not_understood_is_said_and_never_holds(subquery: str) -> None:
    one_row = "insert into t values (1, 0);\n"
    body = one_row + two(f"delete from t where {subquery}", "insert into t values (2, 2)")
    found = verdict(table("id int, v int") + body, "lakeproof")
    assert found.verdict == "unknown"
    assert found.more["cautious"]
    assert any("reads t and has no exact meaning here" in note for note in found.notes)


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamp_ntz"])
def test_j8_ranges_of_dates_are_apart(kind: str) -> None:
    body = """-- job: old
delete from t where d < date '2026-01-01';
-- job: new
update t set v = 1 where d >= date '2026-01-01';
"""
    assert verdict(table(f"d {kind}, v int") + body).verdict == "holds"
    overlapping = body.replace("d >=", "d >= date '2025-12-31' and d <=")
    assert verdict(table(f"d {kind}, v int") + overlapping).verdict == "violated"


@pytest.mark.parametrize("by", ["days(ts)", "hours(ts)", "months(ts)", "bucket(4, id)", "truncate(2, name)"])
def test_j9_partitions_by_transforms(by: str) -> None:
    body = "-- job: one\nupdate t set v = 1 where id = 1;\n-- job: two\ndelete from t where id = 1;\n"
    assert verdict(table("id int, name string, ts timestamp, v int", partitioned=by) + body).verdict == "violated"


def test_j10_a_select_beside_a_delete_with_a_subquery() -> None:
    body = two("insert into t select id, c from t where c > 3", "delete from t where id in (select id from t)")
    found = verdict(table("id int, c int", level="serializable") + body, "lakeproof")
    assert found.verdict == "holds"
    assert verdict(table("id int, c int", level="serializable") + body).verdict == "violated"


def test_j11_a_free_source_has_columns_of_its_own() -> None:
    read = jobs(
        table("id int, state string")
        + """-- job: stream
merge into t using feed s on t.id = s.order_id
  when matched and s.op = 'D' then delete when matched then update set state = s.new_state;
-- job: other
update t set state = 'x' where id = 1;
"""
    )
    [statement] = read.jobs[0].statements
    assert statement.source is not None
    columns = {column.name: column.kind for column in statement.source.columns}
    assert columns == {"order_id": "int", "op": "string", "new_state": "string"}


def test_j12_jobs_that_never_commit_are_no_proof() -> None:
    found = verdict(table("id int") + "-- job: a\ndelete from t where id = 1 and id = 2;\n", "lakeproof")
    assert found.verdict == "unknown"
    assert found.notes == ("a never commits: it finds no row to change on any first table",)


def test_j13_one_limit_for_everything() -> None:
    many = "".join(f"-- job: job{i} times=2\nupdate t set v = v + 1 where id = {i} and v < {i};\n" for i in range(6))
    clock = Clock(4)
    found = answer_jobs(jobs(table("id int, v int") + many), POLICIES["lakeproof"], limits=Limits(clock))
    assert clock.spent < 16
    assert found.verdict == "unknown"
    assert found.cut_by
    assert found.more["explored"]  # what was covered is said


def test_j14_several_tables_and_truncate() -> None:
    text = (
        table("id int, v int", "orders", level="serializable")
        + table("id int, v int", "staging", level="serializable")
        + """-- job: load
merge into orders t using staging s on t.id = s.id
  when matched then update set v = s.v when not matched then insert *;
-- job: clear
truncate table staging;
"""
    )
    found = verdict(text, "lakeproof")
    assert found.verdict == "violated"  # each commit is of one table: the load misses that staging was cleared
    assert found.property("isolation_kept").verdict == "violated"
    assert {one["table"] for one in found.more["first_rows"]} == {"staging"}


def test_j14_write_skew_across_tables_only_at_serializable() -> None:
    body = """insert into a values (1);
insert into b values (1);
-- job: one
delete from a where exists (select 1 from b where b.id = 1);
-- job: two
delete from b where exists (select 1 from a where a.id = 1);
"""

    def both(level: str) -> str:
        return table("id int", "a", level=level) + table("id int", "b", level=level) + body

    assert verdict(both("serializable"), "lakeproof").verdict == "violated"
    assert verdict(both("snapshot"), "lakeproof").verdict == "holds"


def test_j14_from_python(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sql"
    path.write_text(
        table("id int, v int")
        + "-- job: one\nupdate t set v = 1 where id = 1;\n-- job: two\ndelete from t where id = 1;\n"
    )
    found = lakeproof.check(str(path), policy="iceberg-spark")
    assert found.verdict == "violated"
    assert len(repr(found)) < 200
    assert "What to change" in found._repr_html_()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        pytest.param("merge into t using s when matched then delete", "ON", id="MERGE without ON"),
        pytest.param(
            "merge into t using s on t.id = s.id when not matched then insert (id, v) values (s.id)",
            "2 columns and gives 1",
            id="fewer values than columns",
        ),
        pytest.param(
            "merge into t using (values (1)) as s(id, v) on t.id = s.id when matched then delete",
            "2 columns",
            id="a source narrower than its column list",
        ),
        pytest.param("delete from t where x.id = 1", "x.id", id="a qualifier that is not there"),
        pytest.param("update t set id = 1, id = 2", "twice", id="a column set twice"),
        pytest.param("insert into t select id from t", "gives 1", id="a SELECT that is too narrow"),
        pytest.param("delete from u where id = 1", "u is not created", id="a table that nobody creates"),
    ],
)
def test_j15_a_mistake_is_a_sentence_with_its_line(statement: str, says: str) -> None:
    error = refused(table("id int, v int") + f"-- job: a\n{statement};\n")
    assert says in error.message
    assert error.place == "jobs.sql:6"


def test_j16_the_page_says_what_to_change(tmp_path: Path) -> None:
    path, page = tmp_path / "jobs.sql", tmp_path / "page.html"
    path.write_text(
        table("id int, v int")
        + "-- job: one\nupdate t set v = 1 where id = 1;\n-- job: two\ndelete from t where id = 1;\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "lakeproof.cli.main",
            "check",
            str(path),
            "--policy",
            "iceberg-spark",
            "--report",
            str(page),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    text = page.read_text()
    assert text.index("What to change") < text.index("What happened")
    assert "Which jobs stop each other" in text


def test_an_overwritten_partition_is_among_the_first_tables() -> None:
    body = "-- job: one\ninsert overwrite t partition (id = 5) values (1);\n-- job: two\ninsert into t values (5, 7);\n"
    text = table("id int, v int", level="serializable", partitioned="id") + body
    assert verdict(text, "lakeproof").verdict == "holds"
    assert prepare_jobs(jobs(text)).witnesses.domain(("t", "id")).named == {5}
    assert 5 in {row[0] for members in prepare_jobs(jobs(text)).classes["t"].members for row in members}


@pytest.mark.parametrize(
    ("where", "acts"),
    [
        pytest.param("exists (select 1 from t x where x.id > t.id)", True, id="the outer table by its name"),
        pytest.param("exists (select 1 from t where t.id = 9)", False, id="the inner table by its name"),
        pytest.param(
            "exists (select 1 from t x where x.id = id and x.v = 9)", False, id="a bare name is the inner one"
        ),
    ],
)
def test_a_name_in_a_subquery_is_the_innermost_that_it_can_be(where: str, acts: bool) -> None:
    rows = "insert into t values (1, 0);\ninsert into t values (2, 0);\n"
    body = rows + two(f"delete from t where {where}", "update t set v = 1 where id = 1")
    assert verdict(table("id int, v int") + body).verdict == ("violated" if acts else "unknown")


def test_a_field_of_a_struct_is_not_known_and_said() -> None:
    read = jobs(table("id int, p struct<x:int>") + "-- job: a\ndelete from t where p.x = 5;\n")
    assert read.notes == ("`p.x = 5` is not known: each row may match it or not",)


def test_a_query_in_front_of_a_command_is_refused() -> None:
    error = refused(
        table("id int") + "-- job: a\nwith x as (select id from t) delete from t where id in (select id from x);\n"
    )
    assert "WITH" in error.message


def test_first_tables_of_two_tables_are_not_all_made_before_the_first_is_tried() -> None:
    jobs = read_jobs(
        taken_apart(
            "create table a (id int, n int, at timestamp_ntz) using iceberg;\n"
            "create table b (id int, n int, at timestamp_ntz) using iceberg partitioned by (days(at));\n"
            "-- job: one\ninsert into a values (0, 5, null), (0, 2, timestamp_ntz '2026-01-01 12:00:00');\n"
            "-- job: two\nmerge into b t using a s on t.id = s.id\n"
            "  when matched and s.at > timestamp_ntz '2026-01-01 12:00:00' then delete\n"
            "  when not matched then insert (id, n, at) values (s.n + 1, 2, s.at);\n",
            name="two.sql",
        )
    )
    ready = prepare_jobs(jobs)
    tracemalloc.start()
    found = list(islice(first_tables(ready), 2_000))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 2_000
    assert len(set(found)) == 2_000
    assert most < 50_000_000, "contents of both tables are combined as they are asked for"
    sizes = [sum(len(rows) for _, rows in first) for first in found]
    assert sizes == sorted(sizes)


def test_a_value_copied_from_another_table_differs_from_what_it_replaces() -> None:
    """Where both columns were tried with the same value, the copy showed no change and the race was not seen."""
    found = verdict(
        table("id int, n int", level="serializable")
        + table("id int, n int", "staging", level="serializable")
        + """-- job: fill
merge into t using staging s on t.id = s.id when matched then update set n = s.n;
-- job: drop
delete from staging where id = 1;
"""
    )
    assert found.verdict == "violated"
