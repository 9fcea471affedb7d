"""UPDATE, DELETE and MERGE on a table of format version 3, from several threads too; PyIceberg reads the same rows."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

import lakeproof.iceberg.reading.delete_files as reading
from lakeproof.errors import InvalidInput
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
MODES = ", ".join(f"'write.{command}.mode'='merge-on-read'" for command in ("delete", "update", "merge"))
STATEMENTS = (
    "delete from {t} where id in (1, 101)",
    "update {t} set v = 'u' where id in (2, 102)",
    "merge into {t} using (select 3 as i union all select 77) s on {t}.id = s.i "
    "when matched then update set v = 'm' when not matched then insert (id, v) values (i, 'n')",
    "delete from {t} where id = 4",
    "call system.rewrite_position_delete_files('{t}')",
    "call system.rewrite_manifests('{t}')",
    "delete from {t} where id > 107",
    "call system.rewrite_data_files('{t}')",
    "update {t} set v = 'last' where id = 5",
)


def told(lake: Lake, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.collect(lake.sql(f"select * from {name}")))


def by_pyiceberg(warehouse: Path, name: str) -> list[tuple[Any, ...]]:
    catalog = load_catalog(
        "lakeproof", type="sql", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}"
    )
    found = catalog.load_table(("default", name)).scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_every_step_leaves_the_rows_that_version_two_has(lake: Lake, name: str, warehouse: Path) -> None:
    """One table is upgraded in the middle, and one stays at version 2."""
    tables = {f"{name}_{kind}": kind for kind in ("two", "three")}
    for table in tables:
        lake.sql(f"create table {table} (id bigint, v string) using iceberg tblproperties ({MODES})")
        lake.sql(f"insert into {table} select id, 'a' from range(10)")
        lake.sql(f"insert into {table} select id + 100, 'a' from range(10)")
    for number, statement in enumerate(STATEMENTS):
        for table, kind in tables.items():
            if kind == "three" and number == 1:
                lake.sql(f"alter table {table} set tblproperties ('format-version'='3')")
            lake.sql(statement.format(t=table))
        two, three = (told(lake, table) for table in tables)
        assert two == three == by_pyiceberg(warehouse, f"{name}_three")


@pytest.mark.parametrize("writers", [4, 8])
def test_writers_of_different_rows_of_one_file_need_no_rerun(
    lake: Lake, name: str, writers: int, warehouse: Path
) -> None:
    lake.sql(f"create table {name} (id bigint, v string) using iceberg tblproperties ('format-version'='3', {MODES})")
    lake.sql(f"insert into {name} select /*+ coalesce(1) */ id, 'a' from range({2 * writers})")
    together, errors = threading.Barrier(writers), []

    def work(mine: int) -> None:
        together.wait()
        try:
            verb = f"delete from {name}" if mine % 2 else f"update {name} set v = 'u'"
            lake.sql(f"{verb} where id = {mine}")
        except Exception as error:  # told by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    expected = [(n, "u" if n < writers else "a") for n in range(2 * writers) if n >= writers or n % 2 == 0]
    assert told(lake, name) == by_pyiceberg(warehouse, name) == expected
    summaries = [each.summary for each in lake.table(name).snapshots()]
    assert len(summaries) == writers + 1
    assert not [each for each in summaries if "lakeproof.reruns" in each]


def test_a_damaged_vector_is_told_in_one_sentence(lake: Lake, name: str, warehouse: Path) -> None:
    lake.sql(f"create table {name} (id bigint) using iceberg tblproperties ('format-version'='3', {MODES})")
    lake.sql(f"insert into {name} select /*+ coalesce(1) */ id from range(100)")
    lake.sql(f"delete from {name} where id < 50")
    [puffin] = (warehouse / "default" / name).rglob("*.puffin")
    data = bytearray(puffin.read_bytes())
    data[30] ^= 1
    puffin.write_bytes(data)
    reading.forget_positions()
    before = len(lake.table(name).snapshots())
    for statement in (
        f"select * from {name}",
        f"delete from {name} where id = 60",
        f"call system.rewrite_data_files('{name}')",
    ):
        with pytest.raises(InvalidInput, match="cannot be believed: its checksum is wrong") as raised:
            lake.collect(lake.sql(statement))
        assert puffin.name in str(raised.value)
    assert len(lake.table(name).snapshots()) == before
