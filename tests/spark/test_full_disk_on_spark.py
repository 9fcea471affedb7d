"""The disk is full at any write of our own while Spark runs a statement: one sentence, no change."""

from __future__ import annotations

import pytest
from full_disk import Disk
from pyiceberg.io.pyarrow import PyArrowFile

from lakeproof.errors import FULL_DISK, LakeproofError, Unavailable
from lakeproof.spark.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]
MODES = "tblproperties ('write.delete.mode'='{0}', 'write.update.mode'='{0}', 'write.merge.mode'='{0}')"
STATEMENTS = {
    "insert values": "insert into {t} values (9, 'x')",
    "insert select": "insert into {t} select id + 100, s from {t}",
    "delete": "delete from {t} where id = 1",
    "update": "update {t} set s = 'new' where id = 2",
    "merge": "merge into {t} using (select 3 id union all select 77) s on {t}.id = s.id "
    "when matched then update set s = 'm' when not matched then insert (id, s) values (s.id, 'n')",
    "overwrite": "insert overwrite {t} values (1, 'y')",
    "compaction": "call system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))",
    "manifests": "call system.rewrite_manifests('{t}')",
    "position deletes": "call system.rewrite_position_delete_files(table => '{t}', "
    "options => map('rewrite-all', 'true'))",
    "statistics": "call system.compute_table_stats('{t}')",
    "column": "alter table {t} add column more int",
    "branch": "alter table {t} create branch b",
    "properties": "alter table {t} set tblproperties ('a'='b')",
    "create": "create table {t}_new (a int) using iceberg",
    "create as": "create table {t}_new using iceberg as select * from {t}",
}


OF_A_MODE = ("delete", "update", "merge")
CASES = [(kind, "merge-on-read") for kind in STATEMENTS] + [(kind, "copy-on-write") for kind in OF_A_MODE]


@pytest.mark.parametrize(("kind", "mode"), CASES)
def test_a_full_disk_says_so(lake: Lake, name: str, kind: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.sql(f"create table {name} (id int, s string) using iceberg {MODES.format(mode)}")
    lake.sql(f"insert into {name} select id, 'a' from range(6)")
    lake.sql(f"delete from {name} where id = 5")
    rows, head, told = sorted(lake.sql(f"select * from {name}").collect()), lake.table(name).snapshots(), []
    for room in (*range(0, 12, 3), *range(14, 900, 60)):
        disk = Disk(room)
        monkeypatch.setattr(PyArrowFile, "create", disk.create())
        try:
            lake.sql(STATEMENTS[kind].format(t=name))
        except LakeproofError as error:
            told.append((type(error), getattr(error, "message", str(error))))
        finally:
            monkeypatch.setattr(PyArrowFile, "create", disk.real)
        if disk.calls <= room:
            break
        assert sorted(lake.sql(f"select * from {name}").collect()) == rows
        assert lake.table(name).snapshots() == head
    else:
        pytest.fail("it never went well")
    assert set(told) <= {(Unavailable, FULL_DISK)}
    assert told or kind in ("branch", "manifests")
