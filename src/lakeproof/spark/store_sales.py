"""A small table of store sales to try things on: 30 files, 6 days of 5 files each, 2,109 rows, always the same."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS_BY_DAY = {
    "0905245": (108, 80, 66, 49, 36),
    "0906245": (72, 58, 51, 46, 9),
    "0907245": (124, 110, 92, 77, 46),
    "0908245": (96, 84, 71, 58, 37),
    "0909245": (118, 101, 94, 79, 48),
    "0910245": (86, 71, 60, 49, 33),
}
ITEMS_BELOW_5000 = 107  # of the 339 rows of the first day, so that 232 are left out by `ss_item_sk < 5000`
_INTEGERS = (
    ("ss_sold_time_sk", 28_800, 75_600),
    ("ss_item_sk", 1, 18_000),
    ("ss_customer_sk", 1, 100_000),
    ("ss_cdemo_sk", 1, 1_920_800),
    ("ss_hdemo_sk", 1, 7_200),
    ("ss_addr_sk", 1, 50_000),
    ("ss_store_sk", 1, 10),
    ("ss_promo_sk", 1, 300),
    ("ss_quantity", 1, 100),
)
_DECIMALS = ("ss_wholesale_cost", "ss_list_price", "ss_sales_price", "ss_ext_sales_price")
COLUMNS = ", ".join(
    [f"{name} int" for name, _, _ in _INTEGERS]
    + [f"{name} decimal(7,2)" for name in _DECIMALS]
    + ["ss_sold_month string", "ss_sold_day string", "ss_sold_date_sk string"]
)
DEPENDENCIES = "ss_sold_date_sk=ss_sold_month:truncate[2],ss_sold_date_sk=ss_sold_day:truncate[4]"
_SCHEMA = pa.schema(
    [(name, pa.int32()) for name, _, _ in _INTEGERS]
    + [(name, pa.decimal128(7, 2)) for name in _DECIMALS]
    + [("ss_sold_month", pa.string()), ("ss_sold_day", pa.string())]
)


def write_store_sales(folder: Path) -> Path:
    """The files below `folder`, one folder per day as Spark lays them out; files that are there stay."""
    number = 0
    for day, counts in ROWS_BY_DAY.items():
        below = ITEMS_BELOW_5000 if day == "0905245" else None
        for at, rows in enumerate(counts):
            file = folder / f"ss_sold_date_sk={day}" / f"part-{number:05}.parquet"
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                cheap = None if below is None else _share(below, rows, counts, at)
                pq.write_table(_rows(day, number, rows, cheap), file)
            number += 1
    return folder


def _share(below: int, rows: int, counts: tuple[int, ...], at: int) -> int:
    """How many of the first day's items below 5,000 lie in this file: at least one in each."""
    shares = [max(1, below * count // sum(counts)) for count in counts]
    shares[0] += below - sum(shares)
    return min(shares[at], rows)


def _rows(day: str, number: int, rows: int, items_below: int | None) -> pa.Table:
    chance = random.Random(number)
    columns: dict[str, list[object]] = {
        name: [chance.randint(low, high) for _ in range(rows)] for name, low, high in _INTEGERS
    }
    if items_below is not None:
        columns["ss_item_sk"] = [chance.randint(1, 4_999) for _ in range(items_below)]
        columns["ss_item_sk"] += [chance.randint(5_001, 18_000) for _ in range(rows - items_below)]
    for name in _DECIMALS:
        columns[name] = [Decimal(chance.randint(100, 20_000)).scaleb(-2) for _ in range(rows)]
    columns["ss_quantity"] = [None if chance.random() < 0.01 else value for value in columns["ss_quantity"]]
    columns["ss_sold_month"], columns["ss_sold_day"] = [day[:2]] * rows, [day[:4]] * rows
    return pa.table(columns, schema=_SCHEMA)
