"""A `DataFile` from a Parquet footer, for files that Spark or anybody else wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    MetricsMode,
    StatisticsCollector,
    StatsAggregator,
    compute_statistics_plan,
    match_metrics_mode,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import DecimalType
from pyiceberg.utils.decimal import unscaled_to_decimal

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.failures import reading_file, translate_errors

# What other writers call the inside of a list or a map.
SPELLINGS = (
    ("list.element", "list.item"),
    ("list.element", "bag.array_element"),
    ("list.element", "array"),
    ("key_value", "map"),
)


class WrittenFile(NamedTuple):
    """A file that a task has written: its path as the manifest is to spell it, and its partition.

    `partition` holds the transformed values in the order of the spec's fields (a day is days since 1970-01-01, a bucket
    an int, a decimal a `Decimal`), `()` when unpartitioned; `spec_id` `None` is the table's current spec.
    """

    path: str
    partition: tuple[Any, ...] = ()
    spec_id: int | None = None
    file_format: str = "parquet"
    record_count: int | None = None
    sort_order_id: int = 0


def data_files_from_footers(table: Table, written: Sequence[WrittenFile]) -> list[DataFile]:
    """One `DataFile` per written file; ORC and Avro files carry no bounds, and need their `record_count`."""
    reader = FooterReader(table.schema(), table.properties)
    return [_data_file(table, file, reader) for file in written]


class FooterReader:
    """Turns Parquet footers of one schema into the metric columns of a manifest."""

    def __init__(self, schema: Schema, properties: Mapping[str, str]) -> None:
        self.plan: dict[int, StatisticsCollector] = compute_statistics_plan(schema, dict(properties))
        self.ids = parquet_path_to_id_mapping(schema)
        for path, field_id in self.ids.items():
            if "." in path and "list.element" not in path and "key_value" not in path:
                self.plan[field_id] = _bounded(self.plan[field_id], properties)
        for path, field_id in list(self.ids.items()):
            for ours, theirs in SPELLINGS:
                self.ids.setdefault(path.replace(ours, theirs), field_id)

    def metrics(self, footer: pq.FileMetaData, *, without_nan: bool = False) -> dict[str, Any]:
        """The metric fields of a `DataFile`; a column that the schema does not know is left out.

        `without_nan`: whoever wrote the file knows that no NaN is in it.
        """
        columns: dict[int, _Column] = {}
        trusted = without_nan or (footer.created_by or "").startswith("parquet-mr")
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            for position in range(footer.num_columns):
                chunk = group.column(position)
                field_id = self.ids.get(chunk.path_in_schema)
                if field_id is None:
                    continue
                column = columns.get(field_id)
                if column is None:
                    column = columns[field_id] = _Column(self.plan[field_id], nan_shows=trusted)
                column.add(chunk)
        return {
            "column_sizes": {i: c.size for i, c in columns.items()},
            "value_counts": {i: c.values for i, c in columns.items() if c.counts},
            "null_value_counts": {i: c.nulls for i, c in columns.items() if c.counts and c.nulls is not None},
            "nan_value_counts": {i: 0 for i, c in columns.items() if c.counts and c.has_no_nan},
            "lower_bounds": {i: b for i, c in columns.items() if (b := c.bound("min")) is not None},
            "upper_bounds": {i: b for i, c in columns.items() if (b := c.bound("max")) is not None},
            "split_offsets": sorted(_offset(footer.row_group(n)) for n in range(footer.num_row_groups)),
        }


def _bounded(collector: StatisticsCollector, properties: Mapping[str, str]) -> StatisticsCollector:
    """A field of a struct has one value per row, so its bounds are as good as a column's; PyIceberg only counts it."""
    default = properties.get("write.metadata.metrics.default", "truncate(16)")
    mode = match_metrics_mode(properties.get(f"write.metadata.metrics.column.{collector.column_name}", default))
    if mode.type == MetricModeTypes.TRUNCATE and str(collector.iceberg_type) not in ("string", "binary"):
        mode = MetricsMode(MetricModeTypes.FULL)
    return replace(collector, mode=mode)


class _Column:
    """What the row groups say of one column, added up."""

    def __init__(self, collector: StatisticsCollector, *, nan_shows: bool) -> None:
        self.collector, self.nan_shows = collector, nan_shows
        self.size = self.values = 0
        self.nulls: int | None = 0
        self.bounds: StatsAggregator | None = None
        self.bounded = collector.mode.type in (MetricModeTypes.TRUNCATE, MetricModeTypes.FULL)
        self.counts = collector.mode.type != MetricModeTypes.NONE

    def add(self, chunk: pq.ColumnChunkMetaData) -> None:
        self.size += chunk.total_compressed_size
        self.values += chunk.num_values
        statistics = chunk.statistics if chunk.is_stats_set else None
        if statistics is None or not statistics.has_null_count:
            self.nulls = None
        elif self.nulls is not None:
            self.nulls += statistics.null_count
        if not self.bounded or (statistics is not None and statistics.null_count == chunk.num_values):
            return  # a chunk of nulls has no bounds and takes none away
        if statistics is None or not statistics.has_min_max:
            self.bounded = False
            return
        self._add_bounds(chunk, statistics)

    def _add_bounds(self, chunk: pq.ColumnChunkMetaData, statistics: pq.Statistics) -> None:
        kind = self.collector.iceberg_type
        try:
            if self.bounds is None:
                self.bounds = StatsAggregator(kind, chunk.physical_type, self.collector.mode.length)
            low, high = statistics.min, statistics.max
            if isinstance(kind, DecimalType) and chunk.physical_type != "FIXED_LEN_BYTE_ARRAY":
                low, high = (unscaled_to_decimal(raw, kind.scale) for raw in (statistics.min_raw, statistics.max_raw))
        except (ValueError, NotImplementedError, OverflowError):
            # A physical type without an order that Iceberg shares, or a time that Python cannot hold.
            self.bounded = False
            return
        if low != low or high != high:
            self.bounded = False  # NaN was written: these bounds say nothing
            return
        self.bounds.update_min(low)
        self.bounds.update_max(high)

    @property
    def has_no_nan(self) -> bool:
        """Spark's writer puts NaN into the maximum, so real bounds prove that there is none; other writers skip NaN."""
        return (
            self.nan_shows and self.bounded and self.bounds is not None and str(self.collector.iceberg_type) in _FLOATS
        )

    def bound(self, which: str) -> bytes | None:
        """The lower or upper bound as Iceberg spells it."""
        if not self.bounded or self.bounds is None:
            return None
        return self.bounds.min_as_bytes() if which == "min" else self.bounds.max_as_bytes()


_FLOATS = ("float", "double")


def _offset(group: pq.RowGroupMetaData) -> int:
    first = group.column(0)
    if first.has_dictionary_page and first.dictionary_page_offset < first.data_page_offset:
        return int(first.dictionary_page_offset)
    return int(first.data_page_offset)


def data_file_from_bytes(table: Table, written: WrittenFile, footer: pq.FileMetaData, size: int) -> DataFile:
    """The same for a file without NaN that was just written, whose footer is still at hand."""
    metrics = FooterReader(table.schema(), table.properties).metrics(footer, without_nan=True)
    return _made(written, _spec_id(table, written), size, {"record_count": footer.num_rows, **metrics})


def _data_file(table: Table, written: WrittenFile, reader: FooterReader) -> DataFile:
    place, spec_id = f"file {written.path}", _spec_id(table, written)
    arguments: dict[str, Any] = {"record_count": written.record_count}
    with translate_errors(place), reading_file(written.path), table.io.new_input(written.path).open() as stream:
        size = stream.seek(0, 2)
        if written.file_format == "parquet":
            stream.seek(0)
            footer = pq.read_metadata(stream)
            arguments = {"record_count": footer.num_rows, **reader.metrics(footer)}
    if arguments["record_count"] is None:
        raise InvalidInput(f"the row count of a file of format {written.file_format} is not known", place=place)
    return _made(written, spec_id, size, arguments)


def _spec_id(table: Table, written: WrittenFile) -> int:
    spec_id: int = table.spec().spec_id if written.spec_id is None else written.spec_id
    given, fields = len(written.partition), len(table.specs()[spec_id].fields)
    if given != fields:
        raise InvalidInput(f"{given} partition values for {fields} partition fields", place=f"file {written.path}")
    return spec_id


def _made(written: WrittenFile, spec_id: int, size: int, arguments: dict[str, Any]) -> DataFile:
    data_file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=written.path,
        file_format=FileFormat[written.file_format.upper()],
        partition=Record(*written.partition),
        file_size_in_bytes=size,
        sort_order_id=written.sort_order_id,
        **arguments,
    )
    data_file.spec_id = spec_id
    return data_file
