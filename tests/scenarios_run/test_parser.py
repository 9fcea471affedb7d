"""A mistake in a scenario is one sentence, its line and a suggestion; the command ends with exit code 2.

One piece because the table of mistakes is.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakeproof.cli.main import main
from lakeproof.commit import POLICIES, Isolation, Mode
from lakeproof.errors import InvalidInput
from lakeproof.format import PartitionField
from lakeproof.scenarios.against_checks import AgainstChecks
from lakeproof.scenarios.run import expected_under, find_differences, policies_of
from lakeproof.scenarios.text import Rows, ScenarioStep, Seen, StepAnswer, parse_scenario

SQL = """# A DELETE and an INSERT.
table   merge-on-read, columns name color
policy  lakeproof
rows    jack red

w1  scan    DELETE FROM t WHERE name = 'jack'
w2  scan    INSERT INTO t VALUES ('sarah', 'blue')
w2  commit  ok
w1  commit  ok
rows    sarah blue
differs iceberg-spark: w1 commit ok
"""
API = """# A delete file and an overwrite.
table   format v2, columns id data, partitioned by data
policy  iceberg-spark
files   A[a] B(data=b, id=0..4)

w1  rowdelta   add-deletes A_del from 1 exists A filter data = 'a' checks no_new_delete_files
w2  overwrite  remove B add C[b]
w2  commit     ok
w1  commit     ok
files   A A_del C
snapshots append overwrite delete
"""


def mistake(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


# id: (text, what is there, what is typed instead, line, message, hint)
TYPOS = {
    "a verb": (SQL, "w2  commit  ok", "w2  comit  ok", 8, "'comit' is neither a verb nor a header", "mean commit?"),
    "another table": (SQL, "FROM t WHERE", "FROM u WHERE", 7, "A scenario has one table, here `u`, not `t`", ""),
    "a keyword": (SQL, "DELETE FROM t", "DELETE FORM t", 6, "'DELETE FORM t …' names no table", "DELETE FROM t"),
    "a header twice": (
        SQL,
        "rows    jack",
        "policy  pyiceberg\nrows    jack",
        4,
        "`policy` is said twice",
        "in line 3",
    ),
    "a policy for nobody": (
        SQL,
        "rows    jack",
        "policy-of w3 pyiceberg\nrows    jack",
        4,
        "'w3' is not the name of somebody who acts here",
        "w2",
    ),
    "a policy twice": (
        SQL,
        "rows    jack",
        "policy-of w2 pyiceberg\npolicy-of w2 lakeproof\nrows    jack",
        5,
        "w2 has a policy already",
        ":4",
    ),
    "a word of the table twice": (
        SQL,
        "merge-on-read,",
        "merge-on-read, copy-on-write,",
        2,
        "'copy-on-write' was said before",
        "",
    ),
    "a clause twice": (API, "exists A", "exists A from 0", 6, "`from` is said twice", "after one"),
    "a range upside down": (API, "id=0..4", "id=9..1", 4, "'9..1' is not a range", "lower bound first"),
    "a range of two kinds": (API, "id=0..4", "id=9..a", 4, "'9..a' is not a range", "lower bound first"),
    "a verb of the table API": (
        API,
        "w2  overwrite  remove",
        "w2  overwite  remove",
        7,
        "'overwite' is neither a verb nor a header",
        "did you mean overwrite?",
    ),
    "a header": (SQL, "policy  lake", "polcy  lake", 3, "'polcy' is neither a verb nor a header", "mean policy?"),
    "an actor alone": (SQL, "w2  commit  ok", "w2", 8, "'w2' is neither a verb nor a header", "verbs are scan, "),
    "an outcome": (SQL, "w2  commit  ok", "w2  commit  rejectd", 8, "'rejectd' is not an outcome", "mean rejected?"),
    "an outcome that is none": (
        SQL,
        "w2  commit  ok",
        "w2  commit  fine",
        8,
        "'fine' is not an outcome",
        "outcomes are",
    ),
    "a conflict with a strange tail": (
        SQL,
        "w2  commit  ok",
        "w2  commit  conflict target_rows snapshot x",
        8,
        "'conflict target_rows snapshot x' is not an outcome",
        "",
    ),
    "a check in an outcome": (
        SQL,
        "w2  commit  ok",
        "w2  commit  conflict target_row",
        8,
        "'target_row' is not the name of a check",
        "did you mean target_rows?",
    ),
    "a check that is switched on": (
        API,
        "checks no_new_delete_files",
        "checks no_new_delete_file",
        6,
        "'no_new_delete_file' is not the name of a check",
        "did you mean no_new_delete_files?",
    ),
    "a column in WHERE": (SQL, "WHERE name", "WHERE nme", 6, "Cannot find field 'nme' in the table", "name, color"),
    "a column in INSERT": (
        SQL,
        "INTO t VALUES",
        "INTO t (name, colour) VALUES",
        7,
        "There is no column 'colour'",
        "the columns are name, color",
    ),
    "a column in a subquery": (
        SQL,
        "WHERE name = 'jack'",
        "WHERE EXISTS (SELECT 1 FROM t x WHERE x.colour = 'red')",
        6,
        "Cannot find field 'colour' in the table",
        "the columns are name, color",
    ),
    "a column in a conflict filter": (
        API,
        "filter data = 'a'",
        "filter dAtA = 'a'",
        6,
        "Cannot find field 'dAtA' in the table",
        "the columns are id, data; names are case sensitive",
    ),
    "a column of a file": (API, "B(data=b, id", "B(data=b, ident", 4, "There is no column 'ident'", "are id, data"),
    "a column to partition by": (
        API,
        "partitioned by data",
        "partitioned by date",
        2,
        "There is no column 'date' to partition by",
        "the columns are id, data",
    ),
    "a transform": (
        API,
        "partitioned by data",
        "partitioned by buckets[4](data)",
        2,
        "'buckets[4]' is not a partition transform",
        "bucket[n]",
    ),
    "SQL that does not parse": (
        SQL,
        "DELETE FROM t WHERE name =",
        "DELETE FROM t WHERE name = =",
        6,
        "does not parse",
        "",
    ),
    "SQL that selects too few columns": (
        SQL,
        "INTO t VALUES ('sarah', 'blue')",
        "INTO t SELECT name FROM t",
        7,
        "The table has 2 columns to fill, SELECT gives 1",
        "",
    ),
    "SQL that does not fit the rows": (
        SQL,
        "INTO t VALUES ('sarah', 'blue')",
        "INTO t SELECT 'all', sum(color) FROM t",
        7,
        "The command does not fit the rows",
        "",
    ),
    "a quote in SQL": (SQL, "= 'jack'", "= 'jack", 6, "The SQL does not parse: Missing '", ""),
    "SQL that changes no rows": (
        SQL,
        "DELETE FROM t WHERE name = 'jack'",
        "SELECT * FROM t",
        6,
        "SELECT is not a command that changes rows",
        "use INSERT, UPDATE, DELETE",
    ),
    "SQL with too few values": (
        SQL,
        "VALUES ('sarah', 'blue')",
        "VALUES ('sarah')",
        7,
        "The table has 2 columns to fill, VALUES gives 1",
        "",
    ),
    "a filter that does not parse": (API, "filter data = 'a'", "filter data = = 'a'", 6, "does not parse", ""),
    "a file to remove": (API, "remove B", "remove Z", 7, "There is no file 'Z'", "known are A, B"),
    "a file that must exist": (API, "exists A", "exists Z", 6, "There is no file 'Z'", "known are A, B"),
    "a file to delete from": (API, "add-deletes A_del", "add-deletes Z_del", 6, "There is no file 'Z'", "are A, B"),
    "a delete file of no kind": (
        API,
        "add-deletes A_del",
        "add-deletes A_rows",
        6,
        "'A_rows' does not say what it deletes",
        "end it in _del, _dv or _eq",
    ),
    "a delete file that is not live": (
        API,
        "remove B add C[b]",
        "remove-deletes A_del",
        7,
        "There is no live delete file 'A_del'",
        "live are none",
    ),
    "a file that is there already": (
        API,
        "remove B add C[b]",
        "remove B add A[a]",
        7,
        "A is in the table already",
        "remove it in the same call",
    ),
    "a list of files": (API, "add C[b]", "add C[b] (x", 7, "'(x' is not a list of files", "write A(data=u, id=0..4)"),
    "a file's value": (API, "B(data=b, id=0..4)", "B(data=b, id)", 4, "'id' is not column=value", ""),
    "a file's partition": (API, "A[a] ", "A[a,b] ", 4, "A has 2 partition values, the table 1", ""),
    "a file over two partitions": (API, "B(data=b,", "B(data=b..c,", 4, "B spans partitions of data", ""),
    "a clause": (
        API,
        "add-deletes A_del",
        "add-delets A_del",
        6,
        "'add-delets A_del' is not a clause of rowdelta",
        "add-deletes",
    ),
    "a scan snapshot": (API, "from 1", "from x", 6, "`from` needs the number of a snapshot", ""),
    "a scan snapshot to come": (API, "from 1", "from 7", 6, "There is no snapshot 7 yet", ""),
    "a policy": (
        SQL,
        "policy  lakeproof",
        "policy  lakeprof",
        3,
        "'lakeprof' is not the name of a policy",
        "mean lakeproof?",
    ),
    "an actor's policy": (
        SQL,
        "policy  lakeproof",
        "policy  lakeproof\npolicy-of w1  iceberg",
        4,
        "'iceberg' is not the name of a policy",
        "did you mean pyiceberg?",
    ),
    "a policy that differs": (
        SQL,
        "differs iceberg-spark:",
        "differs iceberg-sparc:",
        11,
        "'iceberg-sparc' is not the name of a policy",
        "did you mean iceberg-spark?",
    ),
    "a differs line without a colon": (
        SQL,
        "differs iceberg-spark:",
        "differs iceberg-spark",
        11,
        "A `differs` line is",
        "",
    ),
    "a differs line of no line": (
        SQL,
        "iceberg-spark: w1 commit ok",
        "iceberg-spark: w1 swap ok",
        11,
        "A `differs` line changes a line that is not there",
        "",
    ),
    "a word of the table": (
        SQL,
        "merge-on-read",
        "merge-on-reed",
        2,
        "'merge-on-reed' says nothing of a table",
        "merge-on-read",
    ),
    "a row that is too long": (
        SQL,
        "rows    jack red",
        "rows    jack red A",
        4,
        "A row has 3 values, the table 2 columns",
        "the columns are name, color",
    ),
    "a row that is awaited": (SQL, "rows    sarah blue", "rows    sarah", 10, "A row has 1 values", "name, color"),
    "a quote": (SQL, "rows    jack red", "rows    'jack red", 4, "is not a list of rows: No closing quotation", ""),
    "an operation": (
        API,
        "snapshots append overwrite",
        "snapshots append overwrit",
        11,
        "'overwrit' is not the name of an operation",
        "did you mean overwrite?",
    ),
    "a scan without SQL": (
        SQL,
        "w1  scan    DELETE FROM t WHERE name = 'jack'",
        "w1  scan",
        6,
        "`scan` needs the SQL",
        "",
    ),
    "an answer where there is none": (SQL, "w2  commit  ok", "w2  write  ok", 8, "`write` has no answer", ""),
    "a commit without a scan": (SQL, "w2  commit  ok", "w3  commit  ok", 8, "w3 has nothing to commit", "let it scan"),
    "an expired word": (SQL, "w2  commit  ok", "w2  expire one", 8, "`expire` needs the number of a snapshot", ""),
    "an expired head": (
        SQL,
        "w2  commit  ok",
        "w2  expire 1",
        8,
        "Snapshot 1 cannot be expired",
        "before the head are",
    ),
    "a setting": (SQL, "w2  commit  ok", "w2  set colour", 8, "'colour' cannot be set", "set format v3"),
    "no policy": (SQL, "policy  lakeproof\n", "", 1, "The scenario names no policy", "add a line such as"),
    "no step": (
        "policy lakeproof\nrows jack red\n",
        "jack",
        "john",
        1,
        "The scenario has no step",
        "add lines such as",
    ),
}


@pytest.mark.parametrize("what", TYPOS)
def test_a_mistake_is_named_with_its_line(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, old, new, line, message, hint = TYPOS[what]
    path = tmp_path / "typo.txt"
    path.write_text(mistake(text, old, new), encoding="utf-8")

    assert main(["scenario", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert message in said.err.splitlines()[0]
    assert said.err.splitlines()[1] == f"  at    {path}:{line}"
    assert hint in said.err

    assert main(["scenario", "--json", str(path)]) == 2
    said = capsys.readouterr()
    error = json.loads(said.out)["error"]
    assert set(error) == {"message", "place", "hint"}
    assert message in error["message"]
    assert error["place"] == f"{path}:{line}"
    assert hint in error["hint"]
    assert said.err == ""


@pytest.mark.parametrize("text", [SQL, API], ids=["SQL", "table API"])
def test_without_a_mistake_they_agree(text: str) -> None:
    scenario = parse_scenario(text)
    for name in policies_of(scenario):
        assert find_differences(scenario, POLICIES[name], AgainstChecks) == ()


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "nothing.txt"
    assert main(["scenario", str(path)]) == 2
    assert capsys.readouterr().err == f"error: The scenario cannot be read: No such file or directory\n  at    {path}\n"


def test_a_file_that_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bytes.txt"
    path.write_bytes(b"\xff\xfe\x00")
    assert main(["scenario", "--json", str(path)]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error == {"message": "The scenario is not text in UTF-8", "place": str(path), "hint": ""}


# ---------------------------------------------------------------- what the text means


def test_headers() -> None:
    scenario = parse_scenario(
        """# The title.
        # More words.
        source  a page
        table   update copy-on-write, delete merge-on-read, serializable, format v3, columns id data, \
partitioned by bucket[4](id) data, case-insensitive, dynamic overwrite
        policy  lakeproof, pyiceberg
        policy-of w2  iceberg-spark
        rows    1 a; '2' 'b c'
        rows    -3 null
        w1  scan  DELETE FROM t   # a comment
        w2  scan  DELETE FROM t
        """
    )
    table = scenario.table
    assert (scenario.title, scenario.source) == ("The title.", "a page")
    assert (table.update_mode, table.delete_mode) == (Mode.COPY_ON_WRITE, Mode.MERGE_ON_READ)
    assert (table.isolation, table.dynamic_overwrite) == (Isolation.SERIALIZABLE, True)
    assert (table.shape.format_version, table.shape.case_sensitive) == (3, False)
    assert table.shape.specs == ((PartitionField("id", "bucket[4]"), PartitionField("data")),)
    assert (scenario.policies, scenario.policy_of) == (("lakeproof", "pyiceberg"), (("w2", "iceberg-spark"),))
    assert scenario.rows == (((1, "a"), ("2", "b c")), ((-3, None),))
    assert scenario.steps == tuple(ScenarioStep(line, f"w{line - 8}", "scan", "DELETE FROM t") for line in (9, 10))


def test_outcomes() -> None:
    lines = ["ok", "ok re-run", "already committed", "nothing left", "conflict", "conflict snapshot 2"]
    lines += ("conflict target_rows", "conflict target_rows  snapshot 12", "rejected", "unknown")
    text = "policy lakeproof\n" + "\n".join(f"w1 commit {line}" for line in lines)
    got = [step.expected for step in parse_scenario(text).steps if isinstance(step, ScenarioStep)]
    assert got == [
        StepAnswer("ok"),
        StepAnswer("ok re-run"),
        StepAnswer("already committed"),
        StepAnswer("nothing left"),
        StepAnswer("conflict"),
        StepAnswer("conflict", None, 2),
        StepAnswer("conflict", "target_rows"),
        StepAnswer("conflict", "target_rows", 12),
        StepAnswer("rejected"),
        StepAnswer("unknown"),
    ]


def test_a_differs_line_replaces_the_last_line_like_it() -> None:
    scenario = parse_scenario(
        """policy  lakeproof
        w1  scan    DELETE FROM t
        w1  commit  ok
        rows    none
        w1  commit  ok
        rows    none
        snapshots append
        differs pyiceberg: w1 commit rejected | rows jack red | snapshots append delete"""
    )
    assert policies_of(scenario) == ("lakeproof", "pyiceberg")
    assert expected_under(scenario, "lakeproof") == scenario.steps
    changed = expected_under(scenario, "pyiceberg")
    assert changed[:3] == scenario.steps[:3]
    assert changed[3:] == (
        ScenarioStep(5, "w1", "commit", "", None, StepAnswer("rejected")),
        Rows(6, (("jack", "red"),)),
        Seen(7, "snapshots", ("append", "delete")),
    )


def test_what_a_conflict_leaves_open_is_as_it_came() -> None:
    text = mistake(SQL, "w1  commit  ok\nrows", "w1  commit  conflict\nrows")
    found = find_differences(parse_scenario(text), POLICIES["lakeproof"], AgainstChecks)
    assert [str(one) for one in found] == ["line 9, lakeproof: w1 commit should be 'conflict', is 'ok'"]


def test_rows_and_snapshots_that_differ_are_told() -> None:
    text = mistake(API, "files   A A_del C", "files   A C")
    text = mistake(text, "append overwrite delete", "append overwrite")
    found = find_differences(parse_scenario(text), POLICIES["iceberg-spark"], AgainstChecks)
    assert [str(one) for one in found] == [
        "line 10, iceberg-spark: files should be 'A C', is 'A C A_del'",
        "line 11, iceberg-spark: snapshots should be 'append overwrite', is 'append overwrite delete'",
    ]


def test_a_place_is_the_name_that_was_given() -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_scenario("policy lakeproof\nw1 swp ok\n", name="some/file.txt")
    assert raised.value.place == "some/file.txt:2"


def test_files_of_rows_that_span_partitions_have_names_of_their_own() -> None:
    text = mistake(SQL, "merge-on-read, columns name color", "merge-on-read, columns name color, partitioned by color")
    several = "rows    jack red; ann blue; eve green\nrows    tom red\nrows    kim red"
    scenario = parse_scenario(mistake(text, "rows    jack red", several))
    run = AgainstChecks(scenario, POLICIES["lakeproof"])
    names = [file.path for file in run.history.head.data_files]
    assert len(names) == len(set(names)) == 5
