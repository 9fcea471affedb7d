"""What an audit finds a repair sets right: then nothing is found, the rows are what they were, and no file is gone."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from damaging import first_file, first_manifest, rewrite_file
from lakehouse import Lakehouse, files_below, insert, path_of, people, rows_of, write
from plantings import PLANTINGS, Planting
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session
from test_audit import a_delete_file_that_points_nowhere, good
from test_plantings import BASES, DEPTHS

from lakeproof.audit import Audit, Depth, audit_raw
from lakeproof.audit.holdings import Holdings
from lakeproof.audit.repairing.plan import RepairPlan, apply_plan, make_plan
from lakeproof.audit.row_ids import first_row_ids
from lakeproof.cli.main import main
from lakeproof.commit import POLICIES
from lakeproof.errors import CommitConflict, InvalidInput
from lakeproof.iceberg.committing.whole_file_commits import append
from lakeproof.iceberg.inspecting.opening import open_by_name, open_by_place
from lakeproof.iceberg.mending.avro_records import read_avro, write_avro
from lakeproof.iceberg.pyiceberg_names import Table

POLICY = POLICIES["lakeproof"]
BEYOND_REPAIR = {
    "unreadable_metadata",
    "format_version",
    "snapshot_twice",
    "missing_manifest_list",
    "unreadable_manifest_list",
    "manifest_list_of_another",
    "missing_manifest",
    "unreadable_manifest",
    "missing_file",
    "unreadable_file",
    "damaged_page",
    "column_type",
    "partition_values",
    "equality_ids",
    "position_beyond_file",
    "unreferenced_file",
}
"""Kinds of faults of which nobody but a person, or a copy, knows the truth."""
ALSO_BEYOND = {
    "two columns of one field id",
    "a partition field of a column that is not there",
    "a field id that was changed",
    "two field ids swapped",
    "a line of the list is lost",
    "a line of deletes is lost",
    "a file that claims to be younger",
    "a data file replaced by one of the same size",
    "a data file of another size",
    "a delete file of another size",
    "a delete file that names nothing",
    "a sort order that is not there",
}
REPAIRABLE = [one for one in PLANTINGS if one.kinds[0] not in BEYOND_REPAIR and one.name not in ALSO_BEYOND]


@pytest.fixture
def lake(tmp_path: Path) -> Lakehouse:
    return Lakehouse(tmp_path)


def planned(lake: Lakehouse, depth: Depth = DEPTHS[""], *, roll_back: bool = False) -> RepairPlan:
    return make_plan(open_by_name(lake.catalog, "t"), POLICY, depth=depth, roll_back=roll_back)


def looked_at(lake: Lakehouse, depth: Depth = DEPTHS[""]) -> Audit:
    return audit_raw(open_by_name(lake.catalog, "t"), POLICY, depth=depth)


def repaired(lake: Lakehouse, depth: Depth = DEPTHS[""]) -> Audit:
    """The table after a repair; no file is gone, and the plan says that nothing is left."""
    plan = planned(lake, depth)
    assert plan.steps
    before = files_below(lake.warehouse)
    apply_plan(open_by_name(lake.catalog, "t"), plan)
    assert before <= files_below(lake.warehouse)
    return looked_at(lake, depth)


@pytest.mark.parametrize("planting", [pytest.param(one, id=one.name) for one in REPAIRABLE])
def test_a_repair_sets_right_what_was_planted(lake: Lakehouse, planting: Planting) -> None:
    table = BASES[planting.base](lake)
    rows = {each.snapshot_id: rows_of(table, each.snapshot_id) for each in table.metadata.snapshots}
    live = len(rows_of(table))
    planting.plant(table)
    assert repaired(lake, DEPTHS[planting.depth]).findings == ()
    mended = lake.as_pyiceberg_opens_it()
    assert {number: rows_of(mended, number) for number in rows} == rows
    assert len(rows_of(insert(lake.load(), people(77)))) == live + 1  # and it takes commits
    assert looked_at(lake).findings == ()


@pytest.mark.parametrize("planting", [pytest.param(one, id=one.name) for one in PLANTINGS if one not in REPAIRABLE])
def test_what_cannot_be_set_right_is_left_and_said(lake: Lakehouse, planting: Planting) -> None:
    if planting.name in ("a file that nothing names", "the metadata file is gone"):
        return  # nothing to set right; no plan without metadata
    table = BASES[planting.base](lake)
    planting.plant(table)
    plan = planned(lake, DEPTHS[planting.depth])
    assert planting.kinds[0] in {one.kind for one in plan.left} or plan.steps


def moved(path: Path) -> None:
    aside = path.parent / "aside"
    aside.mkdir()
    shutil.move(path, aside / path.name)


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(first_file, id="a data file"),
        pytest.param(lambda table: first_manifest(table).manifest_path, id="a manifest"),
        pytest.param(lambda table: table.metadata.snapshots[-1].manifest_list, id="a manifest list"),
    ],
)
def test_a_file_that_was_moved_is_found_and_copied_back(lake: Lakehouse, lost: Callable[[Table], str]) -> None:
    table = good(lake)
    rows = rows_of(table)
    moved(path_of(lost(table)))
    assert repaired(lake).findings == ()
    assert rows_of(lake.as_pyiceberg_opens_it()) == rows


def test_a_delete_file_that_deletes_nothing_leaves_by_a_commit(lake: Lakehouse) -> None:
    table = a_delete_file_that_points_nowhere(good(lake))
    rows = rows_of(table)
    assert [one.kind for one in looked_at(lake).findings] == ["dangling_delete_file"]
    assert repaired(lake).findings == ()
    assert rows_of(lake.as_pyiceberg_opens_it()) == rows
    assert len(lake.load().metadata.snapshots) == len(table.metadata.snapshots) + 1


def test_where_nothing_helps_main_goes_back_to_a_good_snapshot(lake: Lakehouse) -> None:
    table = good(lake)
    good_one = table.metadata.snapshots[-2].snapshot_id
    rows = rows_of(table, good_one)
    path_of(table.metadata.snapshots[-1].manifest_list).unlink()
    plan = planned(lake)
    assert (plan.steps, plan.roll_back) == ((), good_one)
    with pytest.raises(InvalidInput, match="nothing that a repair could do"):
        apply_plan(open_by_name(lake.catalog, "t"), plan)
    apply_plan(open_by_name(lake.catalog, "t"), planned(lake, roll_back=True))
    assert {one.severity for one in looked_at(lake).findings} == {"may_become_wrong"}
    assert rows_of(lake.as_pyiceberg_opens_it()) == rows


def damaged(lake: Lakehouse) -> Table:
    table = good(lake)
    next(one for one in PLANTINGS if one.name == "a list that counts other files").plant(table)
    return table


def test_row_ids_stay_when_an_entry_is_taken_out(lake: Lakehouse) -> None:
    """Version 3: what a file does not say of its row ids follows from the entries before it."""
    table = insert(lake.create(properties={"format-version": "3"}), people(1, 2))
    table = append(table, [*write(table, people(3)), *write(table, people(4, 5))]).table
    before = found_ids(lake)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    newest = max(snapshot.manifests(table.io), key=lambda one: one.sequence_number)
    place = path_of(newest.manifest_path)
    file = read_avro(place.read_bytes())
    file.records.insert(2, json_copy(file.records[1]))
    file.records[1:1] = [json_copy(file.records[0])]
    file.records[1][file.name(2)][file.name(2, 142)] = 2  # the same file again, under its own ids
    file.records[3][file.name(2)][file.name(2, 142)] = 3
    place.write_bytes(write_avro(file))
    assert "file_twice" in {one.kind for one in looked_at(lake).findings}
    assert repaired(lake).findings == ()
    assert found_ids(lake) == before


def json_copy(record: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(record)


def found_ids(lake: Lakehouse) -> dict[str, int]:
    """The first row id of every data file."""
    raw = open_by_name(lake.catalog, "t")
    assert raw.words is not None
    holdings = Holdings(raw, raw.words)
    newest = holdings.held[-1]
    return {
        holdings.name(file): first
        for each in newest.entries
        for file, first in zip(each.file.tolist(), first_row_ids(each).tolist(), strict=True)
    }


def test_a_file_of_another_size_is_not_believed_unopened(lake: Lakehouse) -> None:
    table = good(lake)
    rewrite_file(table, lambda rows: rows.slice(0, 1))
    assert [one.kind for one in planned(lake).left] == ["changed_file"]
    assert planned(lake).steps == ()
    assert "record_count" in {one.kind for one in planned(lake, DEPTHS["deep"]).left}


def test_a_plan_is_refused_once_the_table_was_changed(lake: Lakehouse) -> None:
    damaged(lake)
    raw, plan = open_by_name(lake.catalog, "t"), planned(lake)
    insert(lake.load(), people(9))
    before = files_below(lake.warehouse)
    with pytest.raises(CommitConflict, match="changed since the plan"):
        apply_plan(raw, plan)
    assert files_below(lake.warehouse) == before


def test_a_delete_file_stays_where_the_head_has_moved(lake: Lakehouse) -> None:
    """Back at an older snapshot it may name a live file again: without it, deleted rows would be there."""
    table = a_delete_file_that_points_nowhere(good(lake))
    raw, plan = open_by_name(lake.catalog, "t"), planned(lake)
    assert plan.dangling
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[-2].snapshot_id).commit()
    before, location = files_below(lake.warehouse), open_by_name(lake.catalog, "t").location
    with pytest.raises(CommitConflict, match="changed since the plan"):
        apply_plan(raw, plan)
    assert open_by_name(lake.catalog, "t").location == location
    assert files_below(lake.warehouse) == before


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
def test_an_answer_that_is_lost_is_looked_for(lake: Lakehouse, moment: str) -> None:
    """The connection is cut once: before the swap the repair is tried again, after it it is found."""
    damaged(lake)
    raw, plan = open_by_name(lake.catalog, "t"), planned(lake)

    def cut(_session: Session) -> None:
        raise OperationalError("commit", {}, Exception("the connection was cut"))

    event.listen(Session, moment, cut, once=True)
    before = files_below(lake.warehouse)
    location = apply_plan(raw, plan)
    assert open_by_name(lake.catalog, "t").location == location
    assert looked_at(lake).findings == ()
    new = files_below(lake.warehouse) - before
    assert len([name for name in new if name.endswith(".metadata.json")]) == 1  # those of a try in vain are gone


def test_a_table_that_is_opened_by_its_files_is_not_changed(lake: Lakehouse) -> None:
    table = damaged(lake)
    raw = open_by_place(str(path_of(table.metadata_location)))
    with pytest.raises(InvalidInput, match="opened by its files"):
        apply_plan(raw, make_plan(raw, POLICY, depth=Depth()))


class TestTheCommand:
    """`lakeproof repair`."""

    def test_a_plan_and_its_commit(self, lake: Lakehouse, capsys: pytest.CaptureFixture[str]) -> None:
        damaged(lake)
        where = ["--catalog", lake.uri, "--warehouse", lake.warehouse]
        before = files_below(lake.warehouse)
        assert main(["repair", "t", "--plan", *where]) == 1
        said = capsys.readouterr().out
        assert "would  write the manifest list" in said
        assert files_below(lake.warehouse) == before
        at = said.split("--at ")[1].strip()
        assert main(["repair", "t", "--apply", "--at", "00001-other.metadata.json", *where]) == 1
        assert "make the plan again" in capsys.readouterr().err
        assert main(["repair", "t", "--apply", "--at", at, "--json", *where]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["applied"]
        assert told["left"] == []
        assert main(["audit", "t", *where]) == 0
        assert main(["repair", "t", *where]) == 0
        assert "nothing to repair" in capsys.readouterr().out

    def test_a_good_table_has_no_plan(self, lake: Lakehouse) -> None:
        good(lake)
        assert main(["repair", "t", "--catalog", lake.uri, "--warehouse", lake.warehouse, "--deep"]) == 0
