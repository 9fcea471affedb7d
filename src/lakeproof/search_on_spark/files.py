"""States as files: integer columns in Parquet, and beside them every value that they name, once.

The numbers mean something within their folder only, so a folder that is written twice says the same twice, whatever
the worker that wrote it calls its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakeproof.checker.fast.jit import I64
from lakeproof.checker.tables import Interner, Tables
from lakeproof.search_on_spark.folder import done_in
from lakeproof.search_on_spark.packing import pack, unpack
from lakeproof.search_on_spark.sound import checksum_of, reading

VALUES = "values.parquet"
GROUP = 1 << 20  # states that are held decoded at a time
_VALUES_SCHEMA = pa.schema([("sort", pa.int32()), ("value", pa.binary())])


class Packed:
    """The values of a worker's tables as bytes, each packed and unpacked once; sort 0 is shared, the rest are kinds."""

    def __init__(self, tables: Tables) -> None:
        self.interners: list[Interner] = [tables.shared, *tables.owns]
        self.sorts = (0, *(kind + 1 for kind in tables.kinds))  # of each column
        self._bytes: list[dict[int, bytes]] = [{} for _ in self.interners]
        self._numbers: list[dict[bytes, int]] = [{} for _ in self.interners]

    def bytes_of(self, sort: int, number: int) -> bytes:
        """The value with this number."""
        known = self._bytes[sort].get(number)
        if known is None:
            known = self._bytes[sort][number] = pack(self.interners[sort].values[number])
        return known

    def number_of(self, sort: int, packed: bytes) -> int:
        """The number that this worker gives to a packed value."""
        known = self._numbers[sort].get(packed)
        if known is None:
            known = self._numbers[sort][packed] = self.interners[sort](unpack(packed))
        return known


class StatesWriter:
    """Writes states into one folder."""

    def __init__(self, folder: Path, packed: Packed) -> None:
        self.folder, self.packed = folder, packed
        self.numbers = [np.full(len(one.values), -1, np.int64) for one in packed.interners]  # table's -> file's
        self.used: list[list[int]] = [[] for _ in packed.interners]
        names = ["shared", *(f"own_{at}" for at in range(1, len(packed.sorts)))]
        self.schema = pa.schema([(name, pa.int32()) for name in names])

    def write(self, name: str, groups: Iterable[I64]) -> None:
        """Write states given as groups of columns in the tables' numbers."""
        with pq.ParquetWriter(self.folder / name, self.schema, compression="zstd") as file:
            for columns in groups:
                arrays = [
                    pa.array(self._numbered(sort, column), pa.int32())
                    for sort, column in zip(self.packed.sorts, columns, strict=True)
                ]
                file.write_table(pa.Table.from_arrays(arrays, schema=self.schema))

    def _numbered(self, sort: int, column: I64) -> I64:
        numbers, used = self.numbers[sort], self.used[sort]
        new = np.flatnonzero((numbers < 0) & (np.bincount(column, minlength=len(numbers)) > 0))
        numbers[new] = np.arange(len(used), len(used) + len(new))
        used += new.tolist()
        return numbers[column]

    def close(self) -> None:
        """Write the values that the states name."""
        pairs = [(sort, number) for sort, used in enumerate(self.used) for number in used]
        columns: list[Any] = [[sort for sort, _ in pairs], [self.packed.bytes_of(*pair) for pair in pairs]]
        table = pa.table(columns, schema=_VALUES_SCHEMA)
        pq.write_table(table, self.folder / VALUES, compression="zstd", use_dictionary=False)


class StatesReader:
    """Reads states of one folder in the numbers of a worker's tables; values are unpacked only if a state has them."""

    def __init__(self, folder: Path, packed: Packed) -> None:
        self.folder, self.packed = folder, packed
        self.sums = done_in(folder).files
        self.values: list[list[bytes]] = []
        self.numbers: list[I64] = []  # file's -> table's

    def read(self, name: str) -> Iterator[I64]:
        """The states of a file, as groups of columns; none if no such file was written."""
        if name not in self.sums:
            return
        with reading(self.folder / VALUES):
            if not self.values:
                self._read_values()
        with reading(self.folder / name), pq.ParquetFile(self._sound(name)) as file:
            for batch in file.iter_batches(GROUP):
                columns = [column.to_numpy() for column in batch.columns]
                pairs = zip(self.packed.sorts, columns, strict=True)
                yield np.array([self._known(sort, column) for sort, column in pairs])

    def _sound(self, name: str) -> Path:
        """The file, if it is as it was written."""
        if self.sums.get(name) != checksum_of(self.folder / name):
            raise ValueError("its checksum is wrong")
        return self.folder / name

    def _read_values(self) -> None:
        values = pq.read_table(self._sound(VALUES))
        sorts = values["sort"].to_numpy()
        blobs = values["value"].to_pylist()
        begins = np.searchsorted(sorts, range(len(self.packed.interners) + 1)).tolist()
        self.values = [blobs[begin:end] for begin, end in pairwise(begins)]
        self.numbers = [np.full(len(one), -1, np.int64) for one in self.values]

    def _known(self, sort: int, column: I64) -> I64:
        numbers = self.numbers[sort]
        for number in np.flatnonzero((numbers < 0) & (np.bincount(column, minlength=len(numbers)) > 0)).tolist():
            numbers[number] = self.packed.number_of(sort, self.values[sort][number])
        return numbers[column]
