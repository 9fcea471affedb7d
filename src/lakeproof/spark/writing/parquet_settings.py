"""How Spark's Parquet writer is to write: what the table's properties say, and which columns need no dictionary."""

from __future__ import annotations

from collections.abc import Collection

from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.properties import check_properties

_OF_THE_TABLE = {
    "write.parquet.row-group-size-bytes": "parquet.block.size",
    "write.parquet.page-size-bytes": "parquet.page.size",
    "write.parquet.page-row-limit": "parquet.page.row.count.limit",
    "write.parquet.dict-size-bytes": "parquet.dictionary.page.size",
    "write.parquet.compression-level": "parquet.compression.codec.zstd.level",
    "write.parquet.bloom-filter-max-bytes": "parquet.bloom.filter.max.bytes",
}
_OF_A_COLUMN = {
    "write.parquet.bloom-filter-enabled.column.": "parquet.bloom.filter.enabled#",
    "write.parquet.bloom-filter-fpp.column.": "parquet.bloom.filter.fpp#",
    "write.parquet.bloom-filter-ndv.column.": "parquet.bloom.filter.expected.ndv#",
}


def parquet_settings(table: Table, unrepeated: Collection[str] = ()) -> dict[str, str]:
    """Settings of the writer by name; `unrepeated` are columns, by their paths, whose values do not repeat."""
    found = {f"parquet.enable.dictionary#{column}": "false" for column in unrepeated}
    said = {name: value for name, value in table.properties.items() if name.startswith("write.parquet.")}
    check_properties(said, f"table {'.'.join(table.name())}")  # another engine may have written anything there
    for name, value in said.items():
        if name in _OF_THE_TABLE:
            found[_OF_THE_TABLE[name]] = value
        for begins, setting in _OF_A_COLUMN.items():
            if name.startswith(begins):
                found[f"{setting}{name.removeprefix(begins)}"] = value
    return found
