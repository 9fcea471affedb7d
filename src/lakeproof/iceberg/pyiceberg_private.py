"""Everything private that is used of PyIceberg 0.12: attributes with an underscore, fields by number, its own tables.

None of it is promised by PyIceberg. `find_missing` says at the start what another version lacks, by name.
"""

from __future__ import annotations

from typing import Any, cast

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog.sql import IcebergTables
from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestWriter, ManifestWriterV2
from pyiceberg.table import Table, Transaction
from pyiceberg.table.update import TableUpdate

BLOCK_ENTRIES = 500
SEQUENCE_NUMBERS = {2: "sequence_number", 3: "file_sequence_number"}
"""Fields of a manifest entry by number: they have typed setters, but may be null."""
POINTER_COLUMNS = ("catalog_name", "table_namespace", "table_name", "metadata_location", "previous_metadata_location")
ATTRIBUTES = (
    *((ManifestWriter, name) for name in ("_writer", "_meta")),
    *((Transaction, name) for name in ("_table", "_updates")),
    *((ManifestEntry, name) for name in SEQUENCE_NUMBERS.values()),
    *((IcebergTables, name) for name in POINTER_COLUMNS),
)
POINTERS: Any = IcebergTables.__table__
"""The table of a SQL catalog that holds the pointers; of its columns, because the mapped class is slow."""


def find_missing() -> list[str]:
    """What is used here and the installed PyIceberg does not have."""
    return [f"{owner.__name__}.{name}" for owner, name in ATTRIBUTES if not _has(owner, name)]


def _has(owner: type, name: str) -> bool:
    return hasattr(owner, name) or any(name in vars(base).get("__annotations__", {}) for base in owner.__mro__)


def staged_by(transaction: Transaction) -> tuple[Table, tuple[TableUpdate, ...]]:
    """The table that a transaction would make, and what the catalog would be told of it."""
    return transaction._table, transaction._updates


def forget_unassigned(entry: ManifestEntry) -> None:
    """An entry of a manifest whose snapshot has no number yet has none either."""
    for number in SEQUENCE_NUMBERS:
        if entry[number] is not None and entry[number] < 0:
            entry[number] = None


def write_in_blocks(writer: ManifestWriter) -> None:
    """The open writer gathers entries into blocks: PyIceberg writes (and compresses) each as a block of its own."""
    writer._writer = cast(Any, _Blocks(writer._writer))


class _Blocks:
    """Entries that wait for their block."""

    def __init__(self, output: AvroOutputFile[ManifestEntry]) -> None:
        self._output = output
        self._waiting: list[ManifestEntry] = []

    def write_block(self, entries: list[ManifestEntry]) -> None:
        self._waiting += entries
        if len(self._waiting) >= BLOCK_ENTRIES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._output.write_block(self._waiting)
            self._waiting = []

    def __exit__(self, *failure: Any) -> None:
        self._flush()
        self._output.__exit__(*failure)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._output, name)


class DeleteManifestWriter(ManifestWriterV2):
    """PyIceberg's writer says "data" of every manifest; this one says "deletes"."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}
