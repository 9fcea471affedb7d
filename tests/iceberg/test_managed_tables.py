"""Tables are made, changed, named and dropped; each wrong call is one clear sentence."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from lakehouse import PEOPLE, Lakehouse, files_below, insert, people, rows_of, write

from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS, Compare
from lakeproof.iceberg import predicates as p
from lakeproof.iceberg.committing import pointer as swap
from lakeproof.iceberg.committing.whole_file_commits import append, delete_where, overwrite_where
from lakeproof.iceberg.pyiceberg_names import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    Schema,
    StringType,
    StructType,
    TimestampType,
)
from lakeproof.iceberg.reading.aggregates import Range, column_range, count_rows
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.evolution import (
    AddColumn,
    CommentColumn,
    DropColumn,
    DropPartition,
    MoveColumn,
    RenameColumn,
    WidenColumn,
    alter_partitions,
    alter_properties,
    alter_schema,
)
from lakeproof.iceberg.tables.tables import (
    PartitionBy,
    create_namespace,
    create_table,
    drop_table,
    identifier,
    list_tables,
    load_table,
    rename_table,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("t", ("default", "t")), ("a.t", ("a", "t")), ("lakeproof.a.t", ("a", "t")), ("`a`.`t`", ("a", "t"))],
)
def test_names(name: str, expected: tuple[str, str]) -> None:
    assert identifier(name) == expected


def test_making_a_table_twice(lake: Lakehouse) -> None:
    first = lake.create("people")
    with pytest.raises(InvalidInput, match="already exists"):
        lake.create("people")
    same = create_table(lake.catalog, "people", PEOPLE, if_not_exists=True)
    assert same.metadata.table_uuid == first.metadata.table_uuid


def test_an_unknown_table_names_the_nearest(lake: Lakehouse) -> None:
    lake.create("people")
    with pytest.raises(InvalidInput) as caught:
        load_table(lake.catalog, "poeple")
    assert (caught.value.message, caught.value.hint) == ("there is no table `poeple`", "tables in default: people")
    with pytest.raises(InvalidInput, match="no table `nowhere"):
        load_table(lake.catalog, "nowhere.t")


@pytest.mark.parametrize(
    ("by", "message"),
    [
        pytest.param(PartitionBy("nmae"), "there is no column `nmae`", id="unknown column"),
        pytest.param(PartitionBy("id", "day"), "`day` cannot be applied to `id`, which is long", id="wrong type"),
        pytest.param(PartitionBy("id", "half"), "`half` cannot be applied", id="unknown transform"),
        pytest.param(PartitionBy("id", "bucket[4]", "name"), "has the name of a column", id="name taken"),
    ],
)
def test_a_partitioning_that_does_not_fit(lake: Lakehouse, by: PartitionBy, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        lake.create(by=[by])
    assert message in caught.value.message
    assert list_tables(lake.catalog) == ()


def test_rename_and_drop(lake: Lakehouse) -> None:
    insert(lake.create("a"), people(1))
    create_namespace(lake.catalog, "other")
    assert rows_of(rename_table(lake.catalog, "a", "other.b")) == [(1, "x")]
    assert (list_tables(lake.catalog), list_tables(lake.catalog, "other")) == ((), ("b",))
    drop_table(lake.catalog, "other.b")
    drop_table(lake.catalog, "other.b", if_exists=True)
    with pytest.raises(InvalidInput, match="no table"):
        drop_table(lake.catalog, "other.b")


def test_purge_removes_the_files(lake: Lakehouse) -> None:
    insert(insert(lake.create(), people(1)), people(2))
    drop_table(lake.catalog, "t", purge=True)
    assert files_below(Path(lake.warehouse) / "default" / "t") == set()


def test_a_damaged_metadata_file_is_one_sentence(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1))
    metadata = Path(table.metadata_location.removeprefix("file://"))
    metadata.write_text("{}")
    swap._recent.clear()  # as another process sees it
    with pytest.raises(InvalidInput, match="metadata file cannot be read"):
        lake.load()
    metadata.unlink()
    swap._recent.clear()
    with pytest.raises(InvalidInput, match="a file of the table is missing"):
        lake.load()


def test_every_schema_change_keeps_the_rows(lake: Lakehouse) -> None:
    table = insert(lake.create(schema=Schema(NestedField(1, "id", IntegerType()), *PEOPLE.fields[1:])), people(1))
    table = alter_schema(
        table,
        [
            AddColumn("color", StringType(), doc="of the hat", first=True),
            RenameColumn("NAME", "called"),
            WidenColumn("id", LongType()),
        ],
    )
    table = alter_schema(table, [MoveColumn("id", after="called"), CommentColumn("id", doc="number")])
    assert table.schema().column_names == ["color", "called", "id"]
    assert [field.field_id for field in table.schema().fields] == [3, 2, 1]
    table = insert(table, [{"color": "red", "called": "y", "id": 2**40}])
    assert rows_of(lake.as_pyiceberg_opens_it()) == [("red", "y", 2**40), (None, "x", 1)]
    table = alter_schema(table, [DropColumn("color")])
    assert rows_of(lake.as_pyiceberg_opens_it()) == [("x", 1), ("y", 2**40)]
    assert plan(table, p.GreaterThan("id", 2**39)).files.num_rows == 1  # a bound of four bytes beside one of eight


def test_columns_inside_structs(lake: Lakehouse) -> None:
    inner = StructType(NestedField(2, "x", LongType()))
    table = lake.create(
        schema=Schema(NestedField(1, "point", inner), NestedField(3, "tags", ListType(4, StringType())))
    )
    table = insert(table, [{"point": {"x": 5}, "tags": ["a", "b"]}])
    table = alter_schema(table, [AddColumn("point.y", LongType()), RenameColumn("point.x", "east")])
    assert rows_of(lake.as_pyiceberg_opens_it()) == [({"east": 5, "y": None}, ["a", "b"])]
    assert plan(table, p.EqualTo("point.east", 5)).files.num_rows == 1
    assert plan(table, p.EqualTo("point.east", 6)).files.num_rows == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(WidenColumn("id", IntegerType()), "Cannot change column type", id="narrowing"),
        pytest.param(DropColumn("nope"), "there is no column `nope`", id="unknown column"),
        pytest.param(DropColumn("name"), "`name` is a partition column", id="a partition column"),
        pytest.param(AddColumn("id", LongType()), "already exists", id="a name that is taken"),
    ],
)
def test_a_schema_change_that_cannot_be(lake: Lakehouse, change: AddColumn, message: str) -> None:
    table = lake.create(by=[PartitionBy("name")])
    with pytest.raises(InvalidInput, match=message):
        alter_schema(table, [change])
    assert lake.load().schema() == table.schema()


def test_schema_changes_of_two_writers_are_both_made(lake: Lakehouse) -> None:
    lake.create()
    one, two = lake.load(), lake.load()
    alter_schema(one, [AddColumn("a", LongType())])
    alter_schema(two, [AddColumn("b", LongType())])
    assert lake.load().schema().column_names == ["id", "name", "a", "b"]


def test_partition_evolution_prunes_old_and_new_files(lake: Lakehouse) -> None:
    table = insert(lake.create(by=[PartitionBy("name")]), [*people(1, name="a"), *people(2, name="b")])
    table = alter_partitions(table, [DropPartition(PartitionBy("name")), PartitionBy("id", "bucket[4]")])
    table = insert(table, [*people(3, name="a"), *people(4, name="b")])
    assert [field.name for field in table.spec().fields] == ["id_bucket_4"]
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "a"), (2, "b"), (3, "a"), (4, "b")]
    assert plan(table, p.EqualTo("name", "a")).files.num_rows == 2
    assert plan(table, p.EqualTo("id", 4)).files.num_rows == 1
    with pytest.raises(InvalidInput, match="no partition field identity of `name`"):
        alter_partitions(table, [DropPartition(PartitionBy("name"))])


def test_a_dropped_partition_source_does_not_stop_planning_or_writing(lake: Lakehouse) -> None:
    table = insert(lake.create(by=[PartitionBy("name")]), people(1, 2, name="a"))
    table = alter_partitions(table, [DropPartition(PartitionBy("name"))])
    table = alter_schema(table, [DropColumn("name")])
    table = append(table, write(table, [{"id": 7}])).table
    assert plan(table, p.EqualTo("id", 7)).files.num_rows == 1
    table = overwrite_where(table, ALWAYS, write(table, [{"id": 8}])).table
    assert plan(table).files.num_rows == 1


def test_properties(lake: Lakehouse) -> None:
    table = alter_properties(lake.create(), {"a": "1", "b": "2"})
    table = alter_properties(table, {"c": "3"}, remove=["a", "never"])
    kept = {key: value for key, value in table.properties.items() if len(key) == 1}
    assert kept == {"b": "2", "c": "3"}
    with pytest.raises(InvalidInput, match="there is no format version 4"):
        alter_properties(table, {"format-version": "4"})


def test_an_upgrade_from_version_1_to_2_keeps_the_rows(lake: Lakehouse) -> None:
    table = insert(lake.create(properties={"format-version": "1"}), people(1))
    table = insert(alter_properties(table, {"format-version": "2"}), people(2))
    assert table.format_version == 2
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x")]
    assert sorted(plan(table).files["data_sequence_number"].to_pylist()) == [0, 1]


KINDS = Schema(
    NestedField(1, "i", IntegerType()),
    NestedField(2, "d", DateType()),
    NestedField(3, "t", TimestampType()),
    NestedField(4, "m", DecimalType(9, 2)),
    NestedField(5, "f", FloatType()),
    NestedField(6, "s", StringType()),
    NestedField(7, "n", DoubleType()),
)


def test_counts_and_ranges_from_metadata_alone(lake: Lakehouse) -> None:
    table = lake.create(schema=KINDS, by=[PartitionBy("s")])
    rows: list[dict[str, Any]] = [
        {"i": 3, "d": datetime.date(2020, 1, 2), "t": datetime.datetime(2020, 1, 1, 5), "m": Decimal("1.50"), "s": "a"},
        {"i": -1, "d": datetime.date(1969, 1, 2), "t": None, "m": Decimal("-2.25"), "s": "b"},
        {"i": None, "d": None, "t": None, "m": None, "s": "c"},
    ]
    table = append(table, write(table, rows)).table
    for path in plan(table).files["path"].to_pylist():
        Path(path.removeprefix("file://")).unlink()  # the rows cannot be read
    assert count_rows(table) == 3
    assert count_rows(table, Compare("s", "=", "a")) == 1
    assert count_rows(table, Compare("s", "=", "nobody")) == 0
    assert count_rows(table, Compare("i", "=", 3)) in (None, 1)
    assert column_range(table, "i") == Range(-1, 3)
    assert column_range(table, "D") == Range(datetime.date(1969, 1, 2), datetime.date(2020, 1, 2))
    assert column_range(table, "t") == Range(datetime.datetime(2020, 1, 1, 5), datetime.datetime(2020, 1, 1, 5))
    assert column_range(table, "m") == Range(Decimal("-2.25"), Decimal("1.50"))
    assert column_range(table, "n") == Range(None, None)
    assert column_range(table, "s") is None  # string bounds may be cut


def test_metadata_cannot_tell_a_range_when_a_file_has_no_bounds_or_may_hold_nan(lake: Lakehouse) -> None:
    table = lake.create(schema=KINDS, properties={"write.metadata.metrics.column.i": "none"})
    table = append(table, write(table, [{"i": 1, "f": 1.0}])).table
    assert column_range(table, "i") is None
    assert column_range(table, "f") is None  # this writer does not say that there is no NaN


def test_the_empty_table_counts_nothing(lake: Lakehouse) -> None:
    assert count_rows(lake.create()) == 0
    assert column_range(lake.load(), "id") == Range(None, None)


def test_counts_and_plans_of_an_older_snapshot(lake: Lakehouse) -> None:
    table = insert(lake.create(by=[PartitionBy("name")]), [*people(1, name="a"), *people(2, name="b")])
    first = table.metadata.current_snapshot_id
    table = delete_where(table, Compare("name", "=", "a")).table
    assert (count_rows(table), count_rows(table, snapshot_id=first)) == (1, 2)
    with pytest.raises(InvalidInput, match="no snapshot 7"):
        plan(table, snapshot_id=7)
