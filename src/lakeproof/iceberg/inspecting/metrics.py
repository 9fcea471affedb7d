"""What a file really is, as its manifest entry should say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from lakeproof.iceberg.committing.footers import FooterReader
from lakeproof.iceberg.inspecting.columns import TableColumns
from lakeproof.iceberg.inspecting.raw_files import Damaged, Gone, damage_said, read_bytes

METRICS = {109: "value_counts", 110: "null_value_counts", 125: "lower_bounds", 128: "upper_bounds"}


class RealFile(NamedTuple):
    """Format, rows and size of a file, and its metrics by the id of the field that holds them."""

    format: str
    rows: int
    size: int
    metrics: Mapping[int, Mapping[int, Any]]


def read_real(store: FileIO, words: Mapping[str, Any], path: str) -> RealFile | None:
    """What a Parquet file really is; `None`: it is not one, or cannot be read."""
    try:
        data = read_bytes(store, path)
        with damage_said():
            file = pq.ParquetFile(pa.BufferReader(data))
            columns = TableColumns(words)
            own = columns.ids_of(file.schema_arrow)
            schema = columns.wide({number for number in own.values() if number in columns.names})
            modes = {k: v for k, v in (words.get("properties") or {}).items() if k.endswith("metrics.default")}
            reader = FooterReader(schema, modes)
            known = {field.field_id for field in schema.fields}
            reader.ids = {name: number for name, number in own.items() if number in known}
            measured = reader.metrics(file.metadata)
            metrics = {number: measured[name] for number, name in METRICS.items()}
            return RealFile("PARQUET", file.metadata.num_rows, len(data), metrics)
    except (Damaged, Gone):
        return None
