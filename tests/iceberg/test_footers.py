"""Data files from footers: counts and bounds are those of the rows, and never more certain than the footer is."""

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lakehouse import Lakehouse
from pyiceberg.conversions import from_bytes

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.footers import FooterReader, WrittenFile, data_files_from_footers
from lakeproof.iceberg.pyiceberg_names import (
    DataFile,
    DateType,
    DecimalType,
    DoubleType,
    FileFormat,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    Schema,
    StringType,
    StructType,
    TimestampType,
)
from lakeproof.iceberg.tables.tables import PartitionBy


def footer_of(lake: Lakehouse, kind: IcebergType, values: pa.Array, tmp_path: Path, **options: Any) -> DataFile:
    table = lake.create(schema=Schema(NestedField(1, "c", kind)))
    pq.write_table(pa.table({"c": values}), tmp_path / "f.parquet", **options)
    (file,) = data_files_from_footers(table, [WrittenFile(f"file://{tmp_path}/f.parquet")])
    return file


@pytest.mark.parametrize(
    ("kind", "values", "low", "high"),
    [
        (IntegerType(), pa.array([3, None, -1], pa.int32()), -1, 3),
        (LongType(), pa.array([3, None, -1], pa.int32()), -1, 3),
        (StringType(), pa.array(["b", None, "a"]), "a", "b"),
        (StringType(), pa.array(["a" * 40, None, "b" * 40]), "a" * 16, "b" * 15 + "c"),
        (DateType(), pa.array([datetime.date(1970, 1, 3), None, datetime.date(1969, 12, 31)]), -1, 2),
        (TimestampType(), pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1), None], pa.timestamp("us")), 10**6, 10**6),
        (DecimalType(9, 2), pa.array([Decimal("1.10"), None], pa.decimal128(9, 2)), Decimal("1.10"), Decimal("1.10")),
        (
            DecimalType(30, 2),
            pa.array([Decimal("-7.25"), None], pa.decimal128(30, 2)),
            Decimal("-7.25"),
            Decimal("-7.25"),
        ),
    ],
    ids=str,
)
def test_bounds(lake: Lakehouse, tmp_path: Path, kind: Any, values: pa.Array, low: Any, high: Any) -> None:
    file = footer_of(lake, kind, values, tmp_path)
    assert (file.record_count, file.value_counts, file.null_value_counts) == (len(values), {1: len(values)}, {1: 1})
    assert (from_bytes(kind, file.lower_bounds[1]), from_bytes(kind, file.upper_bounds[1])) == (low, high)
    assert file.file_size_in_bytes == (tmp_path / "f.parquet").stat().st_size
    assert file.split_offsets == [4]


def test_bounds_of_many_row_groups(lake: Lakehouse, tmp_path: Path) -> None:
    file = footer_of(lake, LongType(), pa.array([5, 6, None, None, 1, 2]), tmp_path, row_group_size=2)
    ends: tuple[Any, Any] = (from_bytes(LongType(), file.lower_bounds[1]), from_bytes(LongType(), file.upper_bounds[1]))
    assert ends == (1, 6)
    assert (file.null_value_counts, len(file.split_offsets or [])) == ({1: 2}, 3)


def test_a_row_group_without_statistics_takes_all_bounds_away(lake: Lakehouse, tmp_path: Path) -> None:
    file = footer_of(lake, LongType(), pa.array([5, 6]), tmp_path, write_statistics=False)
    assert (file.value_counts, file.null_value_counts, file.lower_bounds) == ({1: 2}, {}, {})


def test_nan_is_never_hidden_by_a_count_of_none(lake: Lakehouse, tmp_path: Path) -> None:
    """This writer skips NaN in its statistics, so their absence cannot be told from them."""
    file = footer_of(lake, DoubleType(), pa.array([1.0, math.nan]), tmp_path)
    assert file.nan_value_counts == {}


def test_columns_inside_structs_lists_and_maps(lake: Lakehouse, tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "s", StructType(NestedField(2, "x", LongType()))),
        NestedField(3, "l", ListType(4, LongType())),
        NestedField(5, "m", MapType(6, StringType(), 7, LongType())),
    )
    table = lake.create(schema=schema)
    ids = {table.schema().find_column_name(number): number for number in range(1, 8)}
    rows = {
        "s": [{"x": 4}, None],
        "l": pa.array([[1, 2], None], pa.list_(pa.field("element", pa.int64()))),
        "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    }
    pq.write_table(pa.table(rows), tmp_path / "f.parquet")
    (file,) = data_files_from_footers(table, [WrittenFile(f"file://{tmp_path}/f.parquet")])
    assert set(file.lower_bounds) == {ids["s.x"]}
    assert set(file.value_counts) == {ids[name] for name in ("s.x", "l.element", "m.key", "m.value")}
    assert file.null_value_counts[ids["s.x"]] == 1


def test_the_metrics_modes_of_the_table_are_kept(tmp_path: Path) -> None:
    schema = Schema(*(NestedField(n, name, StringType()) for n, name in enumerate("abc", 1)))
    properties = {
        "write.metadata.metrics.default": "counts",
        "write.metadata.metrics.column.a": "none",
        "write.metadata.metrics.column.c": "truncate(2)",
    }
    pq.write_table(pa.table({name: ["xyz"] for name in "abc"}), tmp_path / "f.parquet")
    metrics = FooterReader(schema, properties).metrics(pq.read_metadata(tmp_path / "f.parquet"))
    assert metrics["value_counts"] == {2: 1, 3: 1}
    assert (metrics["lower_bounds"], metrics["upper_bounds"]) == ({3: b"xy"}, {3: b"xz"})
    assert set(metrics["column_sizes"]) == {1, 2, 3}


def test_a_column_that_the_table_does_not_know_is_left_out(lake: Lakehouse, tmp_path: Path) -> None:
    table = lake.create(schema=Schema(NestedField(1, "c", LongType())))
    pq.write_table(pa.table({"c": [1], "more": [2]}), tmp_path / "f.parquet")
    (file,) = data_files_from_footers(table, [WrittenFile(f"file://{tmp_path}/f.parquet")])
    assert set(file.value_counts) == {1}


def test_other_formats_need_their_row_count(lake: Lakehouse, tmp_path: Path) -> None:
    table = lake.create()
    (tmp_path / "f.orc").write_bytes(b"ORC")
    (file,) = data_files_from_footers(
        table, [WrittenFile(f"file://{tmp_path}/f.orc", file_format="orc", record_count=3)]
    )
    bounds: Any = file.lower_bounds
    assert (file.file_format, file.record_count, bounds) == (FileFormat.ORC, 3, None)
    with pytest.raises(InvalidInput, match="row count of a file of format orc is not known"):
        data_files_from_footers(table, [WrittenFile(f"file://{tmp_path}/f.orc", file_format="orc")])


def test_what_is_no_parquet_file_is_one_sentence(lake: Lakehouse, tmp_path: Path) -> None:
    table = lake.create(by=[PartitionBy("name")])
    (tmp_path / "f.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(InvalidInput) as caught:
        data_files_from_footers(table, [WrittenFile(f"file://{tmp_path}/f.parquet", ("a",))])
    assert caught.value.place == f"file file://{tmp_path}/f.parquet"
    with pytest.raises(InvalidInput, match="0 partition values for 1 partition fields"):
        data_files_from_footers(table, [WrittenFile(f"file://{tmp_path}/f.parquet")])
