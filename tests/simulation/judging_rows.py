"""What the judge knows of the ids of single rows (format v3): stored or inherited, and what a commit may do to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq
from memory_store import files
from rows_in_files import Row

ROW_ID_FIELD, LAST_CHANGE_FIELD = b"2147483540", b"2147483539"
Lineage = tuple[int | None, int | None]
RowWithId = tuple[Row, int | None, int | None]
"""A row, its id, and the number of its last change."""


def lineage_in(path: str, first: int | None, number: int) -> list[Lineage]:
    """The row id and last change of every row of a data file, as readers must see them."""
    read = pq.read_table(pa.BufferReader(files[path]), use_threads=False)
    by_field = {(field.metadata or {}).get(b"PARQUET:field_id"): field.name for field in read.schema}
    stored = [
        read[by_field[key]].to_pylist() if key in by_field else [None] * read.num_rows
        for key in (ROW_ID_FIELD, LAST_CHANGE_FIELD)
    ]
    if first is None:
        return [(None, None)] * read.num_rows
    rows = enumerate(zip(*stored, strict=True))
    return [(first + at if own is None else own, number if changed is None else changed) for at, (own, changed) in rows]


def wrong_rows(
    before: Mapping[int, RowWithId], after: Mapping[int, RowWithId], *, number: int, given: int
) -> Iterator[str]:
    """What a commit did wrong with the ids of rows (key → row, id, last change); `given`: ids below were handed out."""
    if missing := sorted(key for key, each in after.items() if each[1] is None):
        yield f"rows without an id: {missing}"
        return
    if len(after) != len({each[1] for each in after.values()}):
        yield f"an id is there twice: {sorted(after.values())}"
    for key, (row, own, changed) in after.items():
        old = before.get(key)
        if old is None and own is not None and own < given:
            yield f"new row {key} has id {own}, and ids below {given} were given"
        if old is not None and old[1] is not None and old[1] != own:
            yield f"row {key} had id {old[1]} and has {own}"
        due = number if old is None or old[0] != row else old[2]
        if due is not None and changed != due:
            yield f"row {key} was last changed in {due} and says {changed}"
