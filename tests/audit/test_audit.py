"""An audit finds what is wrong with a recorded table, names snapshots and files, and finds nothing in a good one."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lakehouse import Lakehouse, files_below, insert, path_of, people, write
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, write_manifest_list
from pyiceberg.typedef import Record
from version_three_tables import deletion_vector_file, version_three

from lakeproof.audit import Audit, audit
from lakeproof.audit.findings import find
from lakeproof.audit.kinds import KINDS
from lakeproof.cli.audit_page import audit_page
from lakeproof.cli.main import main
from lakeproof.commit import POLICIES, Command, Mode, TableChange
from lakeproof.errors import InvalidInput
from lakeproof.format import DataFile as Value
from lakeproof.format import DeleteFile, Move, row_set
from lakeproof.iceberg.committing.commit import Committed
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.window import unseen_snapshots
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.avro import read_header
from lakeproof.iceberg.reading.delete_files import write_position_deletes
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.branches import line_from
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.iceberg.upkeep.table_on_disk import table_at


@pytest.fixture
def lake(tmp_path: Path) -> Lakehouse:
    return Lakehouse(tmp_path)


def looked_at(table: Table, policy: str = "lakeproof") -> Audit:
    return audit(table, POLICIES[policy], name="t")


def kinds(found: Audit) -> list[str]:
    return [finding.kind for finding in found.findings]


def head(table: Table) -> int | None:
    snapshot = table.current_snapshot()
    return None if snapshot is None else snapshot.snapshot_id


def first_file(table: Table) -> str:
    return str(plan(table).files["path"].to_pylist()[0])


def row_level(
    table: Table,
    command: Command,
    positions: list[int],
    rows: list[dict[str, Any]],
    *,
    file: str,
    read: int | None,
    policy: str,
    recorded: bool = True,
) -> Table:
    """A merge-on-read command that read snapshot `read`, committed under a policy."""
    bits = row_set(positions)
    theirs = policy != "lakeproof"  # ours are written by the commit itself
    deletes = (write_position_deletes(table, file, np.array(positions)),) if theirs else ()
    change = TableChange(
        command,
        Mode.MERGE_ON_READ,
        command_id=str(uuid.uuid4()) if recorded else "",
        scan_snapshot=read,
        targets=((file, bits),),
        required_data_files=(file,),
    )
    files = NewFiles(tuple(write(table, rows)) if rows else (), deletes)
    done = commit_change(table, change, files, policy=POLICIES[policy])
    assert isinstance(done, Committed)
    return done.table


def good(lake: Lakehouse, name: str = "t") -> Table:
    """A table with an append, a delete, an update and a compaction, all of them right."""
    table = insert(lake.create(name), people(1, 2, 3))
    file = first_file(table)
    table = insert(table, people(4))
    table = row_level(table, Command.DELETE, [0], [], file=file, read=head(table), policy="lakeproof")
    return row_level(table, Command.UPDATE, [1], people(2, name="new"), file=file, read=head(table), policy="lakeproof")


def test_a_good_table_has_no_finding(lake: Lakehouse) -> None:
    found = looked_at(good(lake))
    assert found.findings == ()
    assert found.snapshots == 4
    assert found.assumed == 0


def undeleted(lake: Lakehouse) -> tuple[Table, int]:
    """A DELETE that read snapshot 1 commits over an UPDATE, as Spark lets it."""
    table = insert(lake.create(), people(1, 2, 3))
    read, file = head(table), first_file(table)
    table = row_level(table, Command.UPDATE, [1], people(2, name="new"), file=file, read=read, policy="iceberg-spark")
    update = head(table)
    assert update is not None
    table = row_level(table, Command.DELETE, [1], [], file=file, read=read, policy="iceberg-spark")
    return table, update


def test_the_undelete_is_found_from_what_our_runtime_recorded(lake: Lakehouse) -> None:
    table, update = undeleted(lake)
    found = looked_at(table).findings
    assert [finding.kind for finding in found] == ["undelete"]
    assert found[0].snapshots == (update, head(table))
    assert found[0].check == "target_rows"
    assert found[0].note == ""
    assert "run the DELETE again" in found[0].advice


def without_records(table: Table) -> Table:
    """The same table as another engine would have left it: no summary of ours."""
    path = path_of(table.metadata_location)
    text = json.loads(path.read_text())
    for snapshot in text["snapshots"]:
        snapshot["summary"] = {k: v for k, v in snapshot["summary"].items() if not k.startswith("lakeproof.")}
    other = path.with_name("99999-foreign.metadata.json")
    other.write_text(json.dumps(text))
    return table_at(str(other))


def test_the_undelete_is_inferred_where_nothing_is_recorded(lake: Lakehouse) -> None:
    table, update = undeleted(lake)
    found = looked_at(without_records(table)).findings
    assert [finding.kind for finding in found if finding.kind != "unreferenced_file"] == ["undelete"]
    assert found[0].snapshots == (update, head(table))
    assert "cannot be newer" in found[0].note


def test_the_policy_that_let_it_through_finds_nothing(lake: Lakehouse) -> None:
    table, _ = undeleted(lake)
    assert kinds(looked_at(table, "iceberg-spark")) == []
    assert kinds(looked_at(table, "iceberg-spark-fixed")) == ["undelete"]


def test_a_commit_that_another_policy_refuses_is_told_though_it_lost_nothing(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2, 3))
    read, file = head(table), first_file(table)
    table = row_level(table, Command.UPDATE, [0], people(1, name="new"), file=file, read=read, policy="iceberg-spark")
    table = row_level(table, Command.DELETE, [2], [], file=file, read=read, policy="iceberg-spark")
    (found,) = looked_at(table, "iceberg-spark-fixed").findings
    assert (found.kind, found.check, found.snapshots) == ("refused_commit", "no_new_delete_files", (head(table),))
    assert found.severity == "may_become_wrong"
    assert "run" in found.advice
    assert kinds(looked_at(table)) == []  # row by row nobody was in the way


def test_two_updates_of_one_row_are_a_lost_update(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2))
    read, file = head(table), first_file(table)
    loose = replace(POLICIES["iceberg-spark"].without("no_new_delete_files"), name="loose")
    table = row_level(table, Command.UPDATE, [0], people(1, name="a"), file=file, read=read, policy="iceberg-spark")
    deletes = (write_position_deletes(table, file, np.array([0])),)
    change = TableChange(
        Command.UPDATE,
        Mode.MERGE_ON_READ,
        command_id="second",
        scan_snapshot=read,
        targets=((file, 1),),
        required_data_files=(file,),
    )
    done = commit_change(table, change, NewFiles(tuple(write(table, people(1, name="b"))), deletes), policy=loose)
    assert isinstance(done, Committed)
    assert kinds(looked_at(done.table)) == ["lost_update"]


def test_a_delete_file_written_anew_is_no_second_delete(lake: Lakehouse) -> None:
    """Apache Iceberg puts the rows of a file's older delete file into the new one, which takes its place."""
    table = insert(lake.create(), people(1, 2, 3, 4))
    file = first_file(table)
    for row in range(3):
        older = plan(table).delete_files["path"].to_pylist()
        deletes = write_position_deletes(table, file, np.arange(row + 1))
        change = TableChange(
            Command.UPDATE,
            Mode.MERGE_ON_READ,
            command_id=str(row),
            scan_snapshot=head(table),
            targets=((file, 1 << row),),
            required_data_files=(file,),
            removed_delete_files=tuple(DeleteFile(path) for path in older),
        )
        files = NewFiles(tuple(write(table, people(row + 1, name="new"))), (deletes,))
        done = commit_change(table, change, files, policy=POLICIES["iceberg-spark"])
        assert isinstance(done, Committed)
        table = done.table
    assert len(plan(table).delete_files) == 1
    found = looked_at(without_records(table))
    assert [kind for kind in kinds(found) if kind != "unreferenced_file"] == []


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        pytest.param(people(1, 2, 3), "rows_resurrected_by_rewrite", id="a compaction that ignores a delete"),
        pytest.param(people(2), "rows_lost_by_rewrite", id="a compaction that loses a row"),
    ],
)
def test_a_compaction_that_changes_the_rows(lake: Lakehouse, rows: list[dict[str, Any]], kind: str) -> None:
    table = insert(lake.create(), people(1, 2, 3))
    file = first_file(table)
    table = row_level(table, Command.DELETE, [0], [], file=file, read=head(table), policy="lakeproof")
    new = write(table, rows)
    change = TableChange(
        Command.REWRITE,
        Mode.COPY_ON_WRITE,
        command_id="c",
        scan_snapshot=head(table),
        removed_data_files=(Value(file, record_count=3),),
        kept=((file, row_set([1, 2])),),
        mapping=(Move(file, row_set([1, 2]), new[0].file_path, 0),),
    )
    done = commit_change(table, change, NewFiles(tuple(new)))
    assert isinstance(done, Committed)
    found = looked_at(done.table)
    assert kinds(found) == [kind]
    assert found.findings[0].snapshots == (head(done.table),)


# ---------------------------------------------------------------- planted faults


def a_missing_data_file(table: Table) -> Table:
    path_of(first_file(table)).unlink()
    return table


def a_missing_delete_file(table: Table) -> Table:
    path_of(plan(table).delete_files["path"].to_pylist()[0]).unlink()
    return table


def a_data_file_of_another_size(table: Table) -> Table:
    with path_of(first_file(table)).open("ab") as stream:
        stream.write(b"more")
    return table


def a_file_that_nothing_names(table: Table) -> Table:
    (path_of(first_file(table)).parent / "left-behind.parquet").write_bytes(b"x")
    return table


def a_file_in_the_table_twice(table: Table) -> Table:
    found = plan(table).files.to_pylist()[0]
    data = [task.file for task in table.scan().plan_files() if task.file.file_path == found["path"]]
    done = commit_change(table, TableChange(Command.INSERT, command_id="again"), NewFiles((data[0],)))
    assert isinstance(done, Committed)
    return done.table


def a_delete_file_that_points_nowhere(table: Table) -> Table:
    loose = replace(POLICIES["iceberg-spark"], lines=POLICIES["iceberg-spark"].lines)
    deletes = (write_position_deletes(table, f"{table.location()}/data/never-there.parquet", np.array([0])),)
    change = TableChange(Command.DELETE, Mode.MERGE_ON_READ, command_id="d", scan_snapshot=head(table))
    done = commit_change(table, change, NewFiles((), deletes), policy=loose)
    assert isinstance(done, Committed)
    return done.table


def a_delete_file_of_another_size(table: Table) -> Table:
    with path_of(plan(table).delete_files["path"].to_pylist()[0]).open("ab") as stream:
        stream.write(b"more")
    return table


def with_vectors(table: Table, *rows: list[int]) -> Table:
    """The table as an engine of format version 3 left it: a vector for each list, all of the same data file."""
    file, folder = plan(table).files["path"].to_pylist()[-1], path_of(table.location()) / "data"
    vectors = []
    for number, positions in enumerate(rows):
        path = folder / f"vector-{number}.puffin"
        [(offset, size)] = deletion_vector_file(path, {file: positions}).values()
        vector = DataFile.from_args(
            _table_format_version=3,
            content=DataFileContent.POSITION_DELETES,
            file_path=f"file://{path}",
            file_format=FileFormat.PUFFIN,
            partition=Record(),
            record_count=len(positions),
            file_size_in_bytes=path.stat().st_size,
            referenced_data_file=file,
            content_offset=offset,
            content_size_in_bytes=size,
        )
        vector.spec_id = 0
        vectors.append(vector)
    changed, metadata = version_three(table, vectors), path_of(table.metadata_location)
    shutil.move(path_of(changed.metadata_location), metadata)
    return table_at(str(metadata))


def two_vectors_for_one_file(table: Table) -> Table:
    return with_vectors(table, [0], [0])


def a_missing_puffin_file(table: Table) -> Table:
    changed = with_vectors(table, [0])
    (path_of(table.location()) / "data" / "vector-0.puffin").unlink()
    return changed


def changed_metadata(table: Table, change: Callable[[dict[str, Any]], None]) -> Table:
    path = path_of(table.metadata_location)
    text = json.loads(path.read_text())
    change(text)
    path.write_text(json.dumps(text))
    return table_at(str(path))


def sequence_numbers_out_of_order(table: Table) -> Table:
    def swap(text: dict[str, Any]) -> None:
        text["snapshots"][-1]["sequence-number"] = text["snapshots"][-2]["sequence-number"]

    return changed_metadata(table, swap)


def a_manifest_list_that_lies(table: Table) -> Table:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifests = snapshot.manifests(table.io)
    for manifest in manifests[:1]:
        position = [f.name for f in _fields()].index("added_files_count")
        manifest[position] = (manifest.added_files_count or 0) + 7
    path = path_of(snapshot.manifest_list)
    with write_manifest_list(
        2,
        table.io.new_output(f"file://{path}.new"),
        snapshot.snapshot_id,
        snapshot.parent_snapshot_id,
        snapshot.sequence_number,
        "deflate",
    ) as writer:
        writer.add_manifests(manifests)
    shutil.move(f"{path}.new", path)
    return table_at(str(path_of(table.metadata_location)))


def _fields() -> Any:
    from pyiceberg.manifest import MANIFEST_LIST_FILE_SCHEMAS

    return MANIFEST_LIST_FILE_SCHEMAS[2].fields


def test_a_table_with_one_vector_for_a_file_is_good(lake: Lakehouse) -> None:
    assert kinds(looked_at(with_vectors(good(lake), [0]))) == []


FAULTS = [
    (a_missing_data_file, "missing_file"),
    (a_missing_delete_file, "missing_file"),
    (a_missing_puffin_file, "missing_file"),
    (a_data_file_of_another_size, "changed_file"),
    (a_delete_file_of_another_size, "changed_file"),
    (a_file_that_nothing_names, "unreferenced_file"),
    (a_file_in_the_table_twice, "file_twice"),
    (a_delete_file_that_points_nowhere, "dangling_delete_file"),
    (sequence_numbers_out_of_order, "sequence_numbers"),
    (a_manifest_list_that_lies, "manifest_counts"),
    (two_vectors_for_one_file, "two_vectors"),
]


@pytest.mark.parametrize(("plant", "kind"), [pytest.param(f, k, id=f.__name__.replace("_", " ")) for f, k in FAULTS])
def test_a_planted_fault_is_found(lake: Lakehouse, plant: Callable[[Table], Table], kind: str) -> None:
    found = looked_at(plant(good(lake)))
    assert set(kinds(found)) == {kind}
    assert all(finding.because and finding.advice and finding.severity for finding in found.findings)


def test_findings_can_be_joined(lake: Lakehouse) -> None:
    table, update = undeleted(lake)
    rows = looked_at(table).to_arrow().to_pylist()
    assert rows[0]["kind"] == "undelete"
    assert rows[0]["snapshots"][0] == update


class TestTheCommand:
    """`lakeproof audit`."""

    def test_by_name_folder_and_metadata_file(self, lake: Lakehouse, capsys: pytest.CaptureFixture[str]) -> None:
        table, _ = undeleted(lake)
        metadata = path_of(table.metadata_location)
        for place in ("t", str(metadata.parents[1]), str(metadata)):
            code = main(["audit", place, "--catalog", lake.uri, "--warehouse", lake.warehouse, "--json"])
            found = json.loads(capsys.readouterr().out)
            assert code == 1
            assert (found["table"], found["snapshots"], found["findings"][0]["kind"]) == (place, 3, "undelete")

    def test_a_good_table_exits_with_zero(self, lake: Lakehouse, tmp_path: Path) -> None:
        good(lake)
        page = tmp_path / "page.html"
        assert main(["audit", "t", "--catalog", lake.uri, "--warehouse", lake.warehouse, "--report", str(page)]) == 0
        assert "Nothing was found" in page.read_text()

    def test_a_table_that_is_not_there(self, lake: Lakehouse, capsys: pytest.CaptureFixture[str]) -> None:
        code = main(["audit", "nope", "--catalog", lake.uri, "--warehouse", lake.warehouse, "--json"])
        assert code == 2
        assert "nope" in json.loads(capsys.readouterr().out)["error"]["message"]

    def test_a_catalog_that_is_not_there_is_not_made(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert main(["audit", "nope"]) == 2
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_of_the_table_s_name_does_not_hide_it(
        self, lake: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        good(lake)
        (tmp_path / "elsewhere" / "t").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert main(["audit", "t", "--catalog", lake.uri, "--warehouse", lake.warehouse]) == 0

    def test_a_corrupt_manifest(self, lake: Lakehouse) -> None:
        table = good(lake)
        snapshot = table.current_snapshot()
        assert snapshot is not None
        for manifest in snapshot.manifests(table.io):
            path_of(manifest.manifest_path).write_bytes(b"not a manifest")
        found = looked_at(table_at(str(path_of(table.metadata_location))))
        assert set(kinds(found)) == {"unreadable_manifest"}


def test_the_audit_never_trusts_what_it_has_read_before(lake: Lakehouse) -> None:
    table = good(lake)
    assert looked_at(table).findings == ()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    path_of(snapshot.manifests(table.io)[0].manifest_path).unlink()
    assert kinds(looked_at(table)) == ["missing_manifest"]


def test_a_whole_catalog(lake: Lakehouse, capsys: pytest.CaptureFixture[str]) -> None:
    good(lake, "a")
    path_of(first_file(good(lake, "b"))).unlink()
    where = ["--catalog", lake.uri, "--warehouse", lake.warehouse]
    assert main(["audit", "--all", "--json", *where]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(each["table"], len(each["findings"])) for each in found["tables"]] == [("default.a", 0), ("default.b", 1)]
    assert main(["audit", "a", "--all", *where]) == 2
    assert main(["audit", *where]) == 2


@pytest.mark.parametrize("plant", ["cut after its header", "gone", "manifest"])
def test_no_orphan_is_removed_while_a_snapshot_cannot_be_read(lake: Lakehouse, plant: str) -> None:
    table = good(lake)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    place = path_of(snapshot.manifest_list)
    if plant == "gone":
        place.unlink()
    elif plant == "manifest":
        path_of(snapshot.manifests(table.io)[0].manifest_path).write_bytes(b"Obj\x01")
    else:
        place.write_bytes(place.read_bytes()[: read_header(place.read_bytes()).body])
    before = files_below(table.location())
    with pytest.raises(InvalidInput, match="no file was removed"):
        remove_orphan_files(table, older_than_ms=2**62, allow_young=True)
    assert files_below(table.location()) == before


def test_a_cycle_of_parents_ends_in_every_command(lake: Lakehouse) -> None:
    table = good(lake)
    oldest, newest = table.metadata.snapshots[0], table.metadata.snapshots[-1]
    table.metadata.snapshots[0] = oldest.model_copy(update={"parent_snapshot_id": newest.snapshot_id})
    assert len(list(line_from(newest, table.metadata))) == 4
    assert unseen_snapshots(table, scan_snapshot=None, head_snapshot=newest.snapshot_id).missing == newest.snapshot_id


def test_no_page_and_no_document_shows_the_key_in_a_warehouse_s_address(lake: Lakehouse) -> None:
    table = good(lake)
    path = "s3://AKIA:s3cr3t@bucket/t/data/token=7/a.parquet"
    finding = find("missing_file", f"{path} is gone", files=[path])
    found = looked_at(table)._replace(findings=(finding,))
    for text in (audit_page(found), json.dumps(found.to_json()), str(found.to_arrow().to_pylist())):
        assert "s3cr3t" not in text
        assert "token=7/a.parquet" in text
    assert found.findings[0].files == (path,)  # a repair needs it as it is


def test_every_kind_of_finding_is_planted_somewhere() -> None:
    texts = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    assert [kind for kind in KINDS if f'"{kind}"' not in texts] == []
    assert len(KINDS) >= 60


@pytest.mark.parametrize("total", ["²", "٣", "", "-1", "1e3", "9" * 400])
def test_a_total_that_is_no_number_is_told(lake: Lakehouse, total: str) -> None:
    table = good(lake)
    path = path_of(table.metadata_location)
    text = json.loads(path.read_text())
    text["snapshots"][-1]["summary"]["total-records"] = total
    path.write_text(json.dumps(text))
    assert main(["audit", "t", "--catalog", lake.uri, "--warehouse", lake.warehouse]) in (0, 1)
