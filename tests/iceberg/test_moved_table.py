"""A table whose staged metadata and files were copied elsewhere has the same rows there at every snapshot."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commit_hooks import compaction
from lakehouse import Lakehouse, insert, path_of, people, rows_of
from test_snapshots_made import committed, merge_on_read

from lakeproof.audit.audit import audit
from lakeproof.audit.deep import Depth
from lakeproof.commit import Command
from lakeproof.commit.policy import POLICIES
from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.registering import register_table
from lakeproof.iceberg.tables.tables import PartitionBy
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.iceberg.upkeep.moved_table import StagedCopy, rewrite_table_path

BY_NAME = [PartitionBy("name")]


def lived(lake: Lakehouse, version: str) -> Table:
    """A table with several files, deleted positions, an update, a compaction and a partition."""
    table = lake.create(by=BY_NAME, properties={"format-version": version})
    table = insert(insert(table, people(1, 2, 3, name="a")), people(5, 6, name="a"))
    table = committed(commit_change(table, *compaction(table)))
    table = insert(table, people(4, 7, name="b"))
    paths = plan(table).files["path"].to_pylist()
    table = merge_on_read(table, Command.DELETE, {path: [0] for path in paths}, [])
    return merge_on_read(table, Command.UPDATE, {paths[0]: [1]}, people(9, name="b"))


def copied(moved: StagedCopy) -> list[str]:
    """The places to which the listed files were copied."""
    assert moved.file_list is not None
    pairs = [line.split(",") for line in path_of(moved.file_list).read_text().splitlines()]
    for source, target in pairs:
        path_of(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path_of(source), path_of(target))
    return [target for _, target in pairs]


def snapshots_of(table: Table) -> dict[int, list[tuple[object, ...]]]:
    return {each.snapshot_id: rows_of(table, each.snapshot_id) for each in table.metadata.snapshots}


def opened(lake: Lakehouse, folder: Path, latest: str, name: str = "moved") -> Table:
    return register_table(lake.catalog, f"default.{name}", f"{folder}/metadata/{latest}")


@pytest.mark.parametrize("version", ["2", "3"])
def test_every_snapshot_is_there(lake: Lakehouse, tmp_path: Path, version: str) -> None:
    table, there = lived(lake, version), tmp_path / "there" / "t"
    known, source = snapshots_of(table), path_of(table.location())
    before = sorted(source.rglob("*"))
    moved = rewrite_table_path(table, str(source), str(there), staging=str(tmp_path / "staging"))
    assert sorted(source.rglob("*")) == before
    assert moved.latest == table.metadata_location.rpartition("/")[2]
    assert moved.delete_files == (3 if version == "2" else 2)  # vectors share a file
    copied(moved)
    source.rename(tmp_path / "gone")
    shutil.rmtree(tmp_path / "staging")
    found = opened(lake, there, moved.latest)
    assert found.location() == f"file://{there}"
    assert snapshots_of(found) == known
    assert audit(found, POLICIES["lakeproof"], name="default.moved", depth=Depth(footers=True)).findings == ()
    insert(found, people(10, name="c"))
    assert len(rows_of(found.refresh())) == len(known[table.metadata.current_snapshot_id or 0]) + 1


def test_what_came_since_a_version_is_enough_for_who_has_that(lake: Lakehouse, tmp_path: Path) -> None:
    table, there = lake.create(by=BY_NAME), tmp_path / "there"
    table = insert(table, people(1, 2, 3, name="a"))
    source = table.location()
    first = rewrite_table_path(table, source, f"file://{there}")
    copied(first)
    path = plan(table).files["path"][0].as_py()
    table = merge_on_read(table, Command.DELETE, {path: [0]}, [])
    table = insert(table, people(4, name="b"))
    second = rewrite_table_path(table, source, f"file://{there}", start_version=first.latest)
    assert (second.manifests, second.delete_files) == (2, 1)
    assert not {target.rpartition("/")[2] for target in copied(second)} & {path.rpartition("/")[2]}
    assert snapshots_of(opened(lake, there, second.latest)) == snapshots_of(table)


def test_bad_input_is_one_sentence(lake: Lakehouse, tmp_path: Path) -> None:
    table = insert(insert(lake.create(), people(1)), people(2))
    here, there = table.location(), f"file://{tmp_path}/there"
    for arguments, said in [
        ((here, here), "must be two places"),
        (("", there), "must be two places"),
        (("file:///elsewhere", there), "does not lie under file:///elsewhere"),
    ]:
        with pytest.raises(InvalidInput, match=said):
            rewrite_table_path(table, *arguments)
    with pytest.raises(InvalidInput, match=r"there is no metadata file `x\.json`"):
        rewrite_table_path(table, here, there, start_version="x.json")
    newest = table.metadata_location
    with pytest.raises(InvalidInput, match="there is nothing after start_version"):
        rewrite_table_path(table, here, there, start_version=newest)
    path_of(table.metadata.metadata_log[0].metadata_file).unlink()
    with pytest.raises(InvalidInput, match="a file of the table is not there"):
        rewrite_table_path(table, here, there)
    expire_snapshots(table, older_than_ms=2**62, retain_last=1)
    assert rewrite_table_path(lake.load(), here, there, start_version=newest, with_list=False).file_list is None
