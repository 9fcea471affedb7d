"""Good tables of Apache Iceberg: an audit that reads every page finds nothing; what is planted in them it finds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog

from lakeproof.audit import Audit, Depth, audit_raw
from lakeproof.commit import POLICIES
from lakeproof.iceberg.inspecting.opening import open_by_name
from lakeproof.iceberg.inspecting.raw_files import read_list
from lakeproof.replay.sql_process import SqlProcess

pytestmark = [pytest.mark.peer, pytest.mark.spark]
MERGE_ON_READ = ", ".join(f"'write.{command}.mode'='merge-on-read'" for command in ("delete", "update", "merge"))
ROWS = "select cast(id as int) id, concat('v', id) v, id % 3 part from range(30)"
CHANGES = (
    "insert into {t} " + ROWS,
    "delete from {t} where id = 4",
    "update {t} set v = 'new' where id in (5, 6)",
    "insert into {t} values (100, null, 1), (null, 'x', null)",
    "merge into {t} using (select 7 id union all select 200 id) s on {t}.id = s.id "
    "when matched then update set v = 'merged' when not matched then insert (id, v, part) values (s.id, 'm', 2)",
    "call lakeproof.system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))",
    "delete from {t} where id = 9",
)
TABLES = {
    "copied": "'format-version'='2'",
    "merged": f"'format-version'='2', {MERGE_ON_READ}",
    "vectors": f"'format-version'='3', {MERGE_ON_READ}",
    "lineage": "'format-version'='3'",
}


class Theirs:
    """Apache Iceberg on one catalog, and its tables, each made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine = SqlProcess("apache-iceberg", folder / "catalog.db", str(folder))
        where = {"uri": f"sqlite:///{folder / 'catalog.db'}", "warehouse": f"file://{folder}"}
        self.catalog: Catalog = load_catalog("lakeproof", type="sql", **where)

    def make(self, name: str, properties: str, *, by: str = "") -> None:
        self.engine.sql(
            f"create table {name} (id int, v string, part bigint) using iceberg {by} tblproperties ({properties})"
        )
        for change in CHANGES:
            self.engine.sql(change.format(t=name))

    def audited(self, name: str) -> Audit:
        raw = open_by_name(self.catalog, name)
        return audit_raw(raw, POLICIES["iceberg-spark"], depth=Depth(pages=True))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    running = Theirs(tmp_path_factory.mktemp("theirs"))
    yield running
    running.engine.close()


@pytest.mark.parametrize("by", ["", "partitioned by (part)", "partitioned by (bucket(4, id), truncate(2, v))"])
@pytest.mark.parametrize("kind", TABLES)
def test_nothing_is_found_in_a_good_table(theirs: Theirs, kind: str, by: str) -> None:
    name = f"{kind}{len(by)}"
    theirs.make(name, TABLES[kind], by=by)
    found = theirs.audited(name)
    # Apache Iceberg's compaction leaves the delete files of version 2 that it has emptied of meaning, and says so
    told = [one for one in found.findings if (kind, one.kind) != ("merged", "dangling_delete_file")]
    assert (told, found.notes) == ([], ())
    assert found.snapshots == len(CHANGES)


def test_a_table_that_was_upgraded_tagged_evolved_and_kept_up(theirs: Theirs) -> None:
    theirs.make("grown", f"'format-version'='2', {MERGE_ON_READ}", by="partitioned by (part)")
    for statement in (
        "alter table grown set tblproperties ('format-version'='3')",
        "alter table grown create tag first",
        "alter table grown create branch work",
        "alter table grown rename column v to called",
        "alter table grown add column more int",
        "insert into grown select *, 1 from (" + ROWS + ")",
        "delete from grown where id = 11",
        "insert into default.grown.branch_work values (900, 'w', 1, 1)",
        "alter table grown drop partition field part",
        "insert into grown values (901, 'w', 1, 1)",
        "call lakeproof.system.rewrite_manifests('grown')",
        "call lakeproof.system.rewrite_position_delete_files(table => 'grown', options => map('rewrite-all', 'true'))",
        "delete from grown where id = 12",
        "call lakeproof.system.expire_snapshots(table => 'grown', retain_last => 3, older_than => now())",
        "delete from grown where id = 13",
    ):
        theirs.engine.sql(statement)
    found = theirs.audited("grown")
    assert {one.kind for one in found.findings} <= {"dangling_delete_file"}  # of its first compaction


def test_a_vector_that_was_damaged(theirs: Theirs) -> None:
    theirs.make("broken", TABLES["vectors"])
    table = theirs.catalog.load_table("default.broken")
    vectors = [path for path in Path(theirs.folder).rglob("*.puffin") if "broken" in str(path)]
    for path in vectors:
        data = bytearray(path.read_bytes())
        data[20] ^= 0xFF
        path.write_bytes(bytes(data))
    assert {one.kind for one in theirs.audited("broken").findings} == {"damaged_vector"}
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert any(line.first_row_id is not None for line in read_list(table.io, snapshot.manifest_list).lines)


def test_row_ids_that_come_again(theirs: Theirs) -> None:
    theirs.make("again", TABLES["lineage"])
    place = Path(open_by_name(theirs.catalog, "again").location.split(":", 1)[1].replace("///", "/"))
    words = json.loads(place.read_text())
    words["next-row-id"] = 2
    place.write_text(json.dumps(words))
    assert {one.kind for one in theirs.audited("again").findings} == {"next_row_id"}
