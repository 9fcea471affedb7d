"""View data: what the page, the terminal and the notebook draw, compared exactly."""

from __future__ import annotations

import doctest
import json
from dataclasses import replace
from typing import Any

import pytest
from report_golden import same_as_golden, settled
from report_models import long_walk, polite, undelete

from lakeproof.checker.search import check
from lakeproof.checker.verdicts.trace import NOTHING, Trace, TraceStep
from lakeproof.checker.verdicts.verdict import PropertyVerdict
from lakeproof.report import text, tree, words
from lakeproof.report.moments import moments_of, state_view
from lakeproof.report.table import table_view
from lakeproof.report.view import View, view_of


@pytest.fixture(scope="module")
def shown() -> View:
    return view_of(settled(check(undelete())))


def test_the_view_of_the_undelete_is_this_data(shown: View) -> None:
    same_as_golden("undelete.json", json.dumps(shown, indent=1, ensure_ascii=False) + "\n")


def test_the_title_names_the_row_that_came_back_and_the_summary_says_how(shown: View) -> None:
    assert shown["title"] == "Snapshot 3 shows a row that should not be there: jack blue A"
    assert shown["summary"] == [
        "8 steps by recolour and privacy, the shortest way there.",
        "It takes a race: neither of them gets there alone.",
        "While privacy was running, recolour committed snapshot 2.",
        "The validation of privacy asked only data_files_exist, and let its commit through.",
        "The whole space was explored: 36 states in 0.10 s.",
    ]
    assert [fact["text"] for fact in shown["facts"]] == [
        "consistent_read violated",
        "model toy table",
        "policy iceberg-spark",
        "isolation snapshot",
        "num-writers 2",
        "never reached: some INSERT committed",
    ]


def test_the_last_step_tells_what_became_wrong_and_what_let_it_through(shown: View) -> None:
    last = shown["traces"][0]["moments"][-1]
    assert [badge["text"] for badge in last["badges"]] == ["snapshot 3", "DELETE committed", "wrong read"]
    assert [text.change_in_words(item) for item in last["news"]] == [
        "catalog: metadata-2 → metadata-3",
        "snapshot 3: delete, sequence number 3, by privacy",
        "a reader sees: jack blue A",
        "it should see: no row",
        "delete-2: position deletes: data-1 position 0",
    ]
    assert [text.change_in_words(item) for item in last["held"]] == ["phase: prepared → done"]
    assert last["checks"] == [{"check": "data_files_exist", "answer": "passed", "because": "", "tone": "good"}]
    assert (last["allowed"], last["broken"]) == (True, True)
    assert [moment["broken"] for moment in shown["traces"][0]["moments"][:-1]] == [False] * 8


def test_the_metadata_tree_marks_what_the_commit_added(shown: View) -> None:
    trace = shown["traces"][0]
    table = trace["tables"][trace["moments"][-1]["table"] or 0]
    marks = {box["title"]: box["mark"] for level in table["levels"] for box in level["boxes"]}
    assert marks == {
        "catalog": "changed",
        "metadata-3": "new",
        "snapshot 1": "",
        "snapshot 2": "",
        "snapshot 3": "new",
        "manifest-list-1": "",
        "manifest-list-2": "",
        "manifest-list-3": "new",
        "manifest-1-data": "",
        "manifest-2-data": "",
        "manifest-2-deletes": "",
        "manifest-3-data": "new",
        "manifest-3-deletes": "new",
        "data-1": "",
        "data-2": "",
        "delete-1": "",
        "delete-2": "new",
    }
    deletes = [(link["source"], link["target"]) for link in table["links"] if link["kind"] == "deletes"]
    assert deletes == [("file:delete-1", "file:data-1"), ("file:delete-2", "file:data-1")]
    assert {"source": "manifest:manifest-3-data", "target": "file:data-2", "kind": "has"} in table["links"]


def test_each_reader_is_compared_with_what_it_should_see(shown: View) -> None:
    trace = shown["traces"][0]
    readers = trace["tables"][trace["moments"][-1]["table"] or 0]["readers"]
    assert [(reader["snapshot"], reader["agrees"], reader["head"]) for reader in readers] == [
        (1, True, False),
        (2, True, False),
        (3, False, True),
    ]
    assert readers[2]["rows"] == [{"cells": ["jack", "blue", "A"], "tone": "extra"}]
    assert readers[2]["expected"] == []


def test_steps_that_change_nothing_of_the_table_share_one_table_view(shown: View) -> None:
    trace = shown["traces"][0]
    assert [moment["table"] for moment in trace["moments"]] == [0, 0, 0, 0, 0, 1, 2, 2, 3]
    assert len(trace["tables"]) == 4


@pytest.mark.parametrize(
    ("rows", "expected", "title"),
    [
        ([["a"]], [], "Snapshot 1 shows a row that should not be there: a"),
        ([["a"], ["b"]], [], "Snapshot 1 shows rows that should not be there: a and b"),
        ([], [["a"]], "Snapshot 1 has lost a row: a"),
        ([["a"]], [["b"]], "Snapshot 1 shows a instead of b"),
        ([["a"], ["a"]], [["a"]], "Snapshot 1 shows a row that should not be there: a"),
        ([["b"], ["a"]], [["a"], ["b"]], "A run of m"),
    ],
)
def test_a_wrong_read_is_told_in_the_title(rows: list[Any], expected: list[Any], title: str) -> None:
    state = {"table": {"snapshots": [{"id": 1, "rows": rows, "expected": expected}]}}
    assert view_of(_trace({"table": {"snapshots": []}}, state))["title"] == title


def test_a_lasso_says_which_steps_repeat() -> None:
    found = view_of(settled(check(polite())))
    assert found["title"] == "somebody_goes_in may never come true"
    assert found["summary"][0] == "5 steps by alice and bob; steps 2 to 5 repeat for ever."
    assert found["traces"][0]["loop"] == [2, 5]


@pytest.mark.parametrize(
    ("loop_start", "loop", "said"),
    [
        (0, [1, 1], "1 step by w; step 1 repeats for ever."),
        (1, [], "1 step by w; after them nobody moves any more."),
        (None, None, "1 step by w."),
    ],
)
def test_the_end_of_a_trace(loop_start: int | None, loop: list[int] | None, said: str) -> None:
    found = view_of(replace(_trace({}, {}), loop_start=loop_start))["traces"][0]
    assert (found["loop"], found["summary"]) == (loop, [said])


def test_two_properties_with_one_trace_show_it_once_and_each_links_to_it() -> None:
    verdict = check(undelete())
    first = verdict.property("consistent_read")
    twin = first._replace(name="isolation_kept")
    found = view_of(replace(verdict, properties=(first, twin)))
    assert [trace["properties"] for trace in found["traces"]] == [["consistent_read", "isolation_kept"]]
    assert [property["trace"] for property in found["properties"]] == [0, 0]


def test_reached_properties_with_witnesses_come_after_the_violation() -> None:
    found = view_of(check(undelete(), witnesses=True))
    assert [trace["properties"][0] for trace in found["traces"]] == [
        "consistent_read",
        "some DELETE committed",
        "some swap lost",
    ]
    assert found["title"] == "Snapshot 3 shows a row that should not be there: jack blue A"


def test_a_verdict_without_a_violation_says_so() -> None:
    model = undelete()
    verdict = settled(check(replace(model, properties=model.properties[1:2])))
    found = view_of(verdict)
    assert (found["title"], found["tone"]) == ("Every property holds", "good")
    assert found["summary"] == ["The whole space was explored: 36 states in 0.10 s."]
    assert found["traces"] == []


def test_a_violation_that_does_not_count_is_no_headline_but_has_its_trace() -> None:
    verdict = check(undelete())
    found = verdict.property("consistent_read")._replace(name="no_false_aborts", counts=False)
    shown = view_of(replace(verdict, verdict="holds", properties=(found,)))
    assert (shown["title"], shown["tone"]) == ("Every property that counts holds", "good")
    assert shown["facts"][0] == {"text": "no_false_aborts violated", "tone": "unknown"}
    assert [trace["properties"] for trace in shown["traces"]] == [["no_false_aborts"]]


def test_a_cut_search_is_not_called_the_whole_space() -> None:
    verdict = settled(check(long_walk(60), max_states=20))
    found = view_of(verdict)
    assert (found["title"], found["tone"]) == ("No violation found, but the search was cut", "unknown")
    assert found["summary"] == [f"The search was cut by max-states after {verdict.states} states in 0.10 s."]


def test_random_runs_are_not_called_shortest() -> None:
    found = view_of(check(long_walk(6), simulate=5, seed=3))
    assert found["summary"][0] == "6 steps by counter-1 and counter-2."
    assert found["summary"][-1].startswith("Random runs with seed 3 saw ")


def test_a_property_that_does_not_count_says_so() -> None:
    said = PropertyVerdict("no_false_aborts", "", "always", "violated", counts=False, depth=3, alone=True)
    found = view_of(replace(check(undelete()), properties=(said,)))["properties"][0]
    assert found["says"] == "after 3 steps, by a single process, does not count in the verdict"
    assert (found["verdict"], found["tone"]) == ("violated", "unknown")


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="nothing changed"),
        pytest.param({"a": 1}, {"a": 2}, ["x › a: 1 → 2"], id="a leaf"),
        pytest.param({"a": 1}, {"a": True}, ["x › a: 1 → yes"], id="another type that compares equal"),
        pytest.param({}, {"a": 1}, ["x › a: 1"], id="a record that was empty"),
        pytest.param({"a": {"b": 1}}, {"a": {}}, ["x › a: b: 1 → none"], id="a record that became empty"),
        pytest.param({"a": 1, "b": 2}, {"b": 2}, ["x › a: − 1"], id="a place that is gone"),
        pytest.param({"a": [1, 2]}, {"a": [2, 1]}, ["x › a: 1, 2 → 2, 1"], id="a short tuple is one value"),
        pytest.param(
            {"a": list("bcdef")}, {"a": list("abcdef")}, ["x › a: a"], id="an item put in front marks only itself"
        ),
        pytest.param({"a": [{"p": 1}]}, {"a": [{"p": 2}]}, ["x › a › 0 › p: 1 → 2"], id="a record in its place"),
        pytest.param(
            {"w": [{"name": "v", "at": 1}, {"name": "u", "at": 1}]},
            {"w": [{"name": "u", "at": 2}, {"name": "v", "at": 1}]},
            ["x › w › u › at: 1 → 2"],
            id="records with names are found by name",
        ),
        pytest.param(NOTHING, {"a": {"b": 1}}, ["x: a: (b: 1)"], id="new as a whole"),
    ],
)
def test_differences_of_any_state(before: Any, after: Any, news: list[str]) -> None:
    assert [text.change_in_words(item) for item in tree.news_of(tree.marked("x", before, after))] == news


def test_a_state_is_parted_into_what_each_actor_holds_and_the_rest() -> None:
    state = {"version": 3, "w2": "idle", "writers": [{"name": "w1", "phase": "busy"}], "table": {"snapshots": []}}
    parts = state_view(state, state, ("w1", "w2"))
    assert [node["key"] for node in parts["actors"]] == ["w1", "w2"]
    assert [node["key"] for node in parts["rest"]] == ["version"]
    other = state_view(7, 8, ("w1",))
    assert [(node["key"], node["before"], node["text"]) for node in other["rest"]] == [("state", "7", "8")]


def test_a_table_without_manifests_or_rows_is_still_drawn() -> None:
    table = table_view(None, {"snapshots": [{"id": 7}], "catalog": "m"})
    assert [level["title"] for level in table["levels"]] == ["Catalog", "Metadata file", "Snapshots"]
    assert (table["head"], table["readers"]) == (7, [])


def test_a_file_that_no_snapshot_has_says_so() -> None:
    table = table_view(None, {"snapshots": [], "files": {"data-9": {"kind": "data", "rows": [["x"]]}}})
    box = table["levels"][0]["boxes"][0]
    assert [line["text"] for line in box["lines"]] == ["x", "not in a snapshot"]
    assert box["of"] == []


def test_a_file_that_only_old_manifests_name_is_not_new() -> None:
    manifests = [{"name": "m", "content": "data", "entries": [{"status": "added", "file": "data-1"}]}]
    table = {"snapshots": [{"id": 1, "manifests": manifests}], "files": {}}
    boxes = table_view(table, {**table, "files": {"data-2": {"kind": "data"}}})["levels"][-1]["boxes"]
    assert [(box["title"], box["mark"]) for box in boxes] == [("data-1", ""), ("data-2", "new")]


def test_a_wrong_commit_with_nothing_to_ask_says_so() -> None:
    start = {"table": {"snapshots": []}, "w": {"at": 1}}
    end = {
        "table": {"snapshots": [{"id": 1, "rows": [["a"]], "expected": []}]},
        "w": {"validation": "passed: nothing to ask"},
    }
    said = view_of(_trace(start, end))["summary"]
    assert said[-1] == "The validation of w had nothing to ask, and let its commit through."


def test_checks_may_be_told_one_by_one_and_a_refusal_by_its_mark() -> None:
    told = {"w": {"checks": [{"check": "no_new_delete_files", "answer": "not asked", "because": "policy"}]}}
    checks = moments_of(_trace({"w": {}}, told))["moments"][1]["checks"]
    assert checks == [{"check": "no_new_delete_files", "answer": "not asked", "because": "policy", "tone": "bad"}]
    refused = moments_of(_trace({}, {}, marks=("refused by rows_read",)))["moments"][1]["checks"]
    assert refused == [{"check": "rows_read", "answer": "refused", "because": "", "tone": "refused"}]


def test_what_a_writer_will_ask_is_no_answer_yet_and_a_list_of_checks_is_told_once() -> None:
    will = moments_of(_trace({"w": {"at": 1}}, {"w": {"at": 1, "validation": "will ask a, b"}}))["moments"][1]
    assert (will["checks"], [item["what"] for item in will["news"]]) == ([], ["validation"])
    after = {"w": {"at": 1, "validation": "passed: a, b"}}
    passed = moments_of(_trace({"w": {"at": 1}}, after, label="a, b"))["moments"][1]
    assert [check["check"] for check in passed["checks"]] == ["a", "b"]
    assert (passed["news"], passed["label"]) == ([], "2 checks, passed")
    refused = moments_of(_trace({"w": {}}, {"w": {"validation": "refused by a"}}))["moments"][1]
    assert [(check["check"], check["answer"]) for check in refused["checks"]] == [("a", "refused")]


def test_a_record_that_is_put_away_is_told_in_one_line() -> None:
    busy = {"w": {"phase": "busy", "command": "DELETE", "adds": [], "reads": 3}}
    news = moments_of(_trace(busy, {"w": {"phase": "idle"}}))["moments"][1]["news"]
    assert [text.change_in_words(item) for item in news] == ["phase: busy → idle", "puts away: − command, reads"]


def test_a_table_without_history_still_has_a_reader() -> None:
    table = table_view(None, {"snapshots": [], "rows": [["jack", 1]], "columns": ["name", "n"]})
    assert [(reader["title"], reader["rows"][0]["cells"]) for reader in table["readers"]] == [
        ("the table", ["jack", "1"])
    ]


@pytest.mark.parametrize("module", [words, text], ids=lambda module: str(module.__name__))
def test_examples_in_docstrings(module: Any) -> None:
    tried = doctest.testmod(module)
    assert tried.attempted > 0
    assert tried.failed == 0


def test_view_holds_nothing_but_plain_data(shown: View) -> None:
    assert json.loads(json.dumps(shown)) == shown


def _trace(before: Any, after: Any, marks: tuple[str, ...] = (), label: str = "") -> Trace:
    step = TraceStep("w", "go", label, "goes", marks, None, (), after, ())
    return Trace("m", {}, ("w",), before, (step,))
