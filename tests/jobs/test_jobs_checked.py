"""A file of SQL jobs is explored: anomalies in the jobs' own names, pairs that stop each other, checked proposals."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeproof.checker import Verdict
from lakeproof.commit import POLICIES, Command, Isolation, Mode
from lakeproof.errors import InvalidInput
from lakeproof.jobs.abstraction import abstracted, alternatives
from lakeproof.jobs.answers import Answered, answered
from lakeproof.jobs.reading import Jobs, read_jobs
from lakeproof.jobs.text import taken_apart
from lakeproof.models.iceberg.telling import told

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "people.sql"
TABLE = """create table t (id int, v int) using iceberg tblproperties (
  'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read',
  'write.delete.isolation-level'='{level}', 'write.update.isolation-level'='{level}',
  'write.merge.isolation-level'='{level}');
"""


def jobs(text: str) -> Jobs:
    return read_jobs(taken_apart(text, name="jobs.sql"))


def answer(text: str, policy: str) -> Answered:
    return answered(jobs(text), POLICIES[policy])


def story(found: Answered) -> list[tuple[str, str]]:
    trace = found.verdict.trace
    assert trace is not None
    return [(step.actor, step.step) for step in told(found.beginning.told, trace).steps]


class TestTheExample:
    """A streaming MERGE, a privacy DELETE and a nightly compaction."""

    def test_spark_brings_the_deleted_row_back(self) -> None:
        found = answer(EXAMPLE.read_text(), "iceberg-spark")
        assert found.verdict.verdict == "violated"
        assert found.verdict.property("consistent_read").verdict == "violated"
        commits = [actor for actor, step in story(found) if step == "swap"]
        assert commits == ["stream", "privacy"]

    def test_each_proposal_was_checked_and_holds(self) -> None:
        found = answer(EXAMPLE.read_text(), "iceberg-spark")
        changes = [proposal.change for proposal in found.proposals]
        assert "'write.delete.isolation-level' = 'serializable'" in changes
        assert "'lakeproof.policy' = 'lakeproof'" in changes
        assert "run nightly while none of the others runs" not in changes  # compaction is not to blame
        serializable = EXAMPLE.read_text().replace(
            "'write.delete.isolation-level'='snapshot'", "'write.delete.isolation-level'='serializable'"
        )
        assert answer(serializable, "iceberg-spark").verdict.verdict == "holds"

    def test_pairs_say_which_check_stops_whom(self) -> None:
        pairs = {(pair.first, pair.second): pair for pair in answer(EXAMPLE.read_text(), "iceberg-spark").pairs}
        assert pairs["stream", "privacy"].checks == ("no_new_delete_files",)
        assert "no_new_position_deletes_for_data_files" in pairs["privacy", "nightly"].checks
        assert all(pair.aborts for pair in pairs.values())

    def test_lakeproof_holds_and_only_runs_again(self) -> None:
        found = answer(EXAMPLE.read_text(), "lakeproof")
        assert found.verdict.verdict == "holds"
        assert found.verdict.exhausted
        assert [(pair.first, pair.second, pair.aborts) for pair in found.pairs] == [("stream", "privacy", False)]

    def test_the_unknown_source_is_named(self) -> None:
        notes = jobs(EXAMPLE.read_text()).notes
        assert notes == ("the rows of the MERGE's source «changes AS s» are not known: it may be any one row",)


def verdict(body: str, policy: str, level: str = "snapshot") -> Verdict:
    return answer(TABLE.format(level=level) + body, policy).verdict


LOST_UPDATE = """insert into t values (1, 0);
-- job: count times=2
update t set v = v + 1 where id = 1;
"""


@pytest.mark.parametrize("policy", ["iceberg-spark", "lakeproof"])
def test_two_increments_are_never_lost(policy: str) -> None:
    assert verdict(LOST_UPDATE, policy).verdict == "holds"


def test_increments_run_again_under_lakeproof_and_end_at_two() -> None:
    found = answer(TABLE.format(level="snapshot") + LOST_UPDATE, "lakeproof")
    assert found.verdict.statistics.marks["re-run"] > 0
    assert "abort" not in found.verdict.statistics.marks


def test_a_job_with_several_statements_runs_them_in_order() -> None:
    body = """insert into t values (1, 0);
-- job: both
update t set v = 1 where id = 1;
delete from t where v = 1;
"""
    found = answer(TABLE.format(level="serializable") + body, "lakeproof")
    assert found.verdict.verdict == "holds"
    marks = found.verdict.statistics.marks
    assert marks["UPDATE commits"] == marks["DELETE commits"] == 1


WRITE_SKEW = """insert into t values (1, 0);
insert into t values (2, 0);
-- job: one
delete from t where id = 1 and exists (select 1 from t x where x.id = 2);
-- job: two
delete from t where id = 2 and exists (select 1 from t x where x.id = 1);
"""


def test_write_skew_at_serializable_is_found_under_spark_and_not_under_lakeproof() -> None:
    found = verdict(WRITE_SKEW, "iceberg-spark", "serializable")
    assert found.property("isolation_kept").verdict == "violated"
    assert found.property("consistent_read").verdict == "holds"
    assert verdict(WRITE_SKEW, "lakeproof", "serializable").verdict == "holds"


def test_properties_of_the_table_decide_modes_and_isolation() -> None:
    read = jobs(
        "create table t (id int) using iceberg tblproperties ('write.delete.mode'='merge-on-read');\n"
        "-- job: a\ndelete from t where id = 1;\n"
    )
    assert dict(read.modes) == {
        Command.DELETE: Mode.MERGE_ON_READ,
        Command.UPDATE: Mode.COPY_ON_WRITE,
        Command.MERGE: Mode.COPY_ON_WRITE,
    }
    assert set(dict(read.isolations).values()) == {Isolation.SERIALIZABLE}


def test_a_predicate_that_is_not_known_becomes_a_hidden_column() -> None:
    read = jobs(TABLE.format(level="snapshot") + "-- job: a\ndelete from t where is_old(v) and id = 1;\n")
    cut = abstracted(read)
    assert cut.columns == ("id", "v", "?1")
    assert cut.hidden == {"IS_OLD(v)": "?1"}
    assert read.notes == ("«IS_OLD(v)» is not known: each row may match it or not",)
    assert cut.domains["id"].values == (1, 11)


def test_an_unknown_insert_may_bring_any_row_that_somebody_looks_for() -> None:
    body = "-- job: load\ninsert into t select * from staging;\n-- job: drop\ndelete from t where id = 7;\n"
    read = jobs(TABLE.format(level="snapshot") + body)
    made = list(alternatives(read.jobs[0].commands[0], abstracted(read), read.shape.columns))
    assert {command.rows[0][0] for command in made} == {7, 17}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param("select 1;\n", 1, "no job", id="a file without a job"),
        pytest.param("-- job: a\ndelete from t;\n", 1, "creates no table", id="no table is created"),
        pytest.param("create table t (id int) using iceberg;\n-- job: a\n", 2, "no statement", id="an empty job"),
        pytest.param(
            "create table t (id int) using iceberg;\n-- job: a times=0\ndelete from t;\n",
            2,
            "at least 1",
            id="zero times",
        ),
        pytest.param(
            "create table t (id int) using iceberg;\n-- job: a\ndelete from t;\n-- job: a\ndelete from t;\n",
            4,
            "two jobs named a",
            id="two jobs of one name",
        ),
        pytest.param(
            "create table t (id int) using iceberg;\n-- job: a\n\ndelete from people where id = 1;\n",
            4,
            "people is not created",
            id="another table",
        ),
        pytest.param(
            "create table t (id int) using iceberg;\n-- job: a\ndelete from t where ida = 1;\n",
            3,
            "ida",
            id="an unknown column",
        ),
        pytest.param(
            "create table t (id int) using iceberg;\n-- job: a\ndelete frm t where id = 1;\n",
            3,
            "",
            id="SQL that does not parse",
        ),
        pytest.param("create table t (id int) using iceberg;\n-- job: a\nselect * from t;\n", 3, "", id="a query"),
        pytest.param(
            "create table t (id int) using iceberg tblproperties ('write.delete.mode'='merge');\n"
            "-- job: a\ndelete from t;\n",
            1,
            "write.delete.mode",
            id="a mode that does not exist",
        ),
    ],
)
def test_bad_input_names_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        jobs(text)
    assert error.value.place == f"jobs.sql:{line}"
    assert message in error.value.message
