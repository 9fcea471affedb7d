"""The walk-through of the table-management text: every snapshot and every count as it says them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lakeproof.spark.lake import Lake
from lakeproof.spark.store_sales import COLUMNS, DEPENDENCIES, ROWS_BY_DAY, write_store_sales

pytestmark = pytest.mark.spark

DATA = (
    "ss_sold_time_sk,ss_item_sk,ss_customer_sk,ss_cdemo_sk,ss_hdemo_sk,ss_addr_sk,ss_store_sk,ss_promo_sk,ss_quantity,"
    "ss_wholesale_cost,ss_list_price,ss_sales_price,ss_ext_sales_price,ss_sold_month,ss_sold_day"
)


def test_the_twin_has_the_shape_of_the_text(tmp_path: Path) -> None:
    folder = write_store_sales(tmp_path)
    assert len(list(folder.glob("*/*.parquet"))) == 30
    assert sum(map(sum, ROWS_BY_DAY.values())) == 2109
    assert sum(ROWS_BY_DAY["0906245"]) == 236


def test_the_walk_through_on_the_generated_twin(lake: Lake, tmp_path: Path) -> None:
    walk(lake, write_store_sales(tmp_path / "src"), tmp_path / "out", "twin")


@pytest.mark.skipif("LAKEPROOF_STORE_SALES" not in os.environ, reason="LAKEPROOF_STORE_SALES names no data")
def test_the_walk_through_on_the_original_data(lake: Lake, tmp_path: Path) -> None:
    walk(lake, Path(os.environ["LAKEPROOF_STORE_SALES"]), tmp_path / "out", "original")


def walk(lake: Lake, source: Path, out: Path | str, name: str) -> None:
    def count(where: str = "", before: str = "") -> int:
        found = lake.sql(f"{before} select count(*) from {name}_out {where}").collect()
        return int(found[0][0])

    def snapshots() -> list[tuple[Any, ...]]:
        view = f"select numAddedFiles, numdDeletedFiles, id, parentId, timeMillis from `{name}_out$snapshots`"
        return [tuple(row) for row in lake.sql(view).collect()]

    lake.sql(
        f"create table {name} ({COLUMNS}) using parquet options (path '{source}') partitioned by (ss_sold_date_sk)"
    )
    lake.sql(f"msck repair table {name}")
    lake.sql("set spark.sql.files.minPartitionNum=30")
    lake.sql(
        f'create table if not exists {name}_out ({COLUMNS}) using parquet options (path "{out}", '
        f'addTableManagement "true", columnDependencies "{DEPENDENCIES}") partitioned by (ss_sold_date_sk)'
    )
    assert snapshots() == []

    lake.sql(f"insert into {name}_out select * from {name}")
    assert [each[:2] for each in snapshots()] == [(30, 0)]
    assert count() == 2109
    one_day = "where ss_sold_date_sk='0906245'"
    assert count(one_day) == 236
    plan = lake.sql(f"explain select count(*) from {name}_out {one_day}").collect()[0][0]
    assert "ss_sold_month = '09'" in plan
    assert "Files: 5 of 30" in plan

    lake.sql(f"insert into {name}_out select * from {name}")
    assert count() == 4218
    first = snapshots()[0]
    assert count(before=f"as of '{first[4]}'") == 2109

    lake.sql(f"insert overwrite table {name}_out select * from {name}")
    assert count() == 2109
    lake.sql(
        f"insert overwrite table {name}_out partition ( ss_sold_date_sk='0906245' ) "
        f"select {DATA} from {name} where ss_sold_date_sk='0906245'"
    )
    assert count() == 2109
    lake.sql(
        f"insert overwrite table {name}_out partition ( ss_sold_date_sk='0905245' ) "
        f"select {DATA} from {name} where ss_sold_date_sk='0905245' and ss_item_sk < 5000"
    )
    assert count() == 1877
    assert count(before=f"as of '{first[4]}'") == 2109

    history = snapshots()
    assert [each[:2] for each in history] == [(30, 0), (30, 0), (30, 60), (5, 5), (5, 5)]
    assert [each[3] for each in history] == [-1, *(each[2] for each in history[:-1])]
    last = lake.sql(f"select * from {name}_out where ss_item_sk > 5000 and ss_sold_date_sk='0905245'")
    assert last.collect() == []
    assert [scan.plan.files.num_rows for scan in lake.scans(last)] == [0]
    lake.sql("set spark.sql.files.minPartitionNum=2")
