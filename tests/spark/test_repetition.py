"""Which columns need no dictionary: what footers say, and what may not be concluded from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeproof.spark.writing.repetition import LEAST_ROWS, columns_without_dictionary

ROWS = LEAST_ROWS
SCATTERED = [hash((n, "x")) % (1 << 40) for n in range(ROWS)]


def footer(folder: Path, values: list[Any], **how: Any) -> pq.FileMetaData:
    path = folder / "f.parquet"
    how = {"compression": "zstd", "use_dictionary": False, **how}
    pq.write_table(pa.table({"a": values, "d": [n % 3 for n in range(len(values))]}), path, **how)
    return pq.read_metadata(path)


def test_a_plain_column_of_scattered_values(tmp_path: Path) -> None:
    assert columns_without_dictionary(footer(tmp_path, SCATTERED, use_dictionary=["d"])) == {"a"}


@pytest.mark.parametrize(
    ("values", "how"),
    [
        pytest.param(SCATTERED, {"use_dictionary": True}, id="it has a dictionary"),
        pytest.param(SCATTERED[:-1], {}, id="too few rows to tell"),
        pytest.param([n % 50 for n in range(ROWS)], {}, id="plain, though its values repeat"),
        pytest.param(SCATTERED, {"compression": "none"}, id="not compressed, so that nothing shows repetition"),
        pytest.param(SCATTERED, {"row_group_size": ROWS // 2}, id="small row groups"),
    ],
)
def test_a_column_of_which_nothing_follows(tmp_path: Path, values: list[Any], how: dict[str, Any]) -> None:
    assert columns_without_dictionary(footer(tmp_path, values, **how)) == frozenset()


def test_every_large_row_group_must_say_so(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    schema = pa.schema([("a", pa.int64())])
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False) as writer:
        writer.write_table(pa.table({"a": SCATTERED}))
        writer.write_table(pa.table({"a": [7] * ROWS}))
    assert columns_without_dictionary(pq.read_metadata(path)) == frozenset()
