"""Good tables of ours and of PyIceberg: nothing is found in any of them, though every page is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from lakehouse import PEOPLE, Lakehouse, PartitionBy, insert, people, write
from pyiceberg.table import Table
from pyiceberg.types import DecimalType, DoubleType, NestedField, TimestampType
from test_audit import good

from lakeproof.audit import Depth, audit_raw
from lakeproof.commit import POLICIES
from lakeproof.filters import ALWAYS
from lakeproof.iceberg.committing.whole_file_commits import overwrite_where
from lakeproof.iceberg.inspecting.opening import open_by_name
from lakeproof.iceberg.pyiceberg_names import Schema
from lakeproof.iceberg.tables.refs import create_branch, create_tag
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.iceberg.upkeep.rewrite_manifests import rewrite_manifests


def ours_with_row_level_commands(lake: Lakehouse) -> None:
    good(lake)


def ours_partitioned_overwritten_and_rewritten(lake: Lakehouse) -> None:
    table = insert(lake.create(by=(PartitionBy("id", "bucket[4]"), PartitionBy("name"))), people(1, 2, 3))
    table = insert(insert(table, people(4, 5, name="other")), [{"id": None, "name": None}])
    overwrite_where(table, ALWAYS, write(table, people(7, 8, 9)))
    rewrite_manifests(insert(lake.load(), people(10)))


def ours_of_version_three_with_a_tag(lake: Lakehouse) -> None:
    table = insert(lake.create(properties={"format-version": "3"}), people(1, 2, 3))
    create_tag(table, "first")
    create_branch(lake.load(), "work")
    overwrite_where(lake.load(), ALWAYS, write(lake.load(), people(7)))
    insert(lake.load(), people(8))


def ours_of_version_one_and_expired(lake: Lakehouse) -> None:
    table = insert(lake.create(properties={"format-version": "1"}), people(1, 2))
    table = insert(insert(table, people(3)), people(4))
    expire_snapshots(table, older_than_ms=2**62, retain_last=2)


def theirs(lake: Lakehouse, schema: Schema = PEOPLE) -> Table:
    return lake.as_pyiceberg_opens_it() if lake.catalog.table_exists("default.t") else _made(lake, schema)


def _made(lake: Lakehouse, schema: Schema) -> Table:
    return lake.catalog.create_table("default.t", schema)


def rows(*numbers: int) -> pa.Table:
    fields = pa.schema([("id", pa.int64()), ("name", pa.large_string())])
    return pa.Table.from_pylist([{"id": number, "name": f"n{number}"} for number in numbers], schema=fields)


def pyiceberg_appends_overwrites_and_deletes(lake: Lakehouse) -> None:
    table = theirs(lake)
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5))
    table.delete("id = 2")
    table.overwrite(rows(9))


def pyiceberg_partitions_and_evolves(lake: Lakehouse) -> None:
    schema = Schema(
        NestedField(1, "id", PEOPLE.find_type("id")),
        NestedField(2, "at", TimestampType()),
        NestedField(3, "price", DecimalType(9, 2)),
        NestedField(4, "weight", DoubleType()),
        NestedField(5, "name", PEOPLE.find_type("name")),
    )
    table = theirs(lake, schema)
    with table.update_spec() as change:
        change.add_identity("at")
        change.add_identity("price")
    arrow = pa.table(
        {
            "id": pa.array([1, 2, None], pa.int64()),
            "at": pa.array([0, 10**15, None], pa.timestamp("us")),
            "price": pa.array(["-1.50", "7.25", None], pa.string()).cast(pa.decimal128(9, 2)),
            "weight": pa.array([float("nan"), 1.5, None]),
            "name": pa.array(["anna", "bob", None], pa.large_string()),
        }
    )
    table.append(arrow)
    with table.update_schema() as evolve:
        evolve.rename_column("name", "called")
        evolve.add_column("more", PEOPLE.find_type("id"))
    table.append(arrow.rename_columns(["id", "at", "price", "weight", "called"]).append_column("more", arrow["id"]))
    with table.update_spec() as change:
        change.remove_field("at")
    table.append(arrow.rename_columns(["id", "at", "price", "weight", "called"]))


def pyiceberg_tags_and_rolls_back(lake: Lakehouse) -> None:
    table = theirs(lake)
    table.append(rows(1))
    table.append(rows(2))
    first = table.metadata.snapshots[0].snapshot_id
    table.manage_snapshots().create_tag(first, "first").create_branch(first, "work").commit()
    table.append(rows(3), branch="work")
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    table.append(rows(4))


GOOD = [
    ours_with_row_level_commands,
    ours_partitioned_overwritten_and_rewritten,
    ours_of_version_three_with_a_tag,
    ours_of_version_one_and_expired,
    pyiceberg_appends_overwrites_and_deletes,
    pyiceberg_partitions_and_evolves,
    pyiceberg_tags_and_rolls_back,
]


@pytest.mark.parametrize("make", [pytest.param(make, id=make.__name__.replace("_", " ")) for make in GOOD])
def test_nothing_is_found_in_a_good_table(tmp_path: Path, make: Callable[[Lakehouse], None]) -> None:
    lake = Lakehouse(tmp_path)
    make(lake)
    found = audit_raw(open_by_name(lake.catalog, "t"), POLICIES["iceberg-spark"], depth=Depth(pages=True))
    assert found.findings == ()
    assert found.notes == ()
    assert found.snapshots >= 2
