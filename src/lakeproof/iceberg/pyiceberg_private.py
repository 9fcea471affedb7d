"""Everything private that is used of PyIceberg 0.12: attributes with an underscore, fields by number, its own tables.

None of it is promised by PyIceberg. `find_missing` says at the start what another version lacks, by name.
"""

from __future__ import annotations

from typing import Any, cast

from pyiceberg.avro.file import AvroFile, AvroOutputFile
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.io import FileIO, OutputFile
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestListWriterV2,
    ManifestWriter,
    ManifestWriterV2,
    PartitionFieldSummary,
    _inherit_from_manifest,
)
from pyiceberg.table import StagedTable, Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableRequirement, TableUpdate, UpgradeFormatVersionUpdate
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.typedef import Identifier, Record

from lakeproof.iceberg.format_v3.metadata import NEWEST, require_kept, upgraded, write_metadata

BLOCK_ENTRIES = 500
SEQUENCE_NUMBERS = {2: "sequence_number", 3: "file_sequence_number"}
"""Fields of a manifest entry by number: they have typed setters, but may be null."""
FIRST_ROW_ID, REFERENCED_FILE, CONTENT_OFFSET, CONTENT_SIZE = 16, 17, 18, 19
"""Fields of a data file of format version 3 by number: PyIceberg has no names for them."""
FILE_FIELDS, MANIFEST_FIRST_ROW_ID, MANIFEST_FIELDS = 20, 15, 16
POINTER_COLUMNS = ("catalog_name", "table_namespace", "table_name", "metadata_location", "previous_metadata_location")
ATTRIBUTES = (
    *((ManifestWriter, name) for name in ("_writer", "_meta", "_with_partition", "_output_file")),
    *((ManifestListWriterV2, name) for name in ("_writer", "_meta", "_output_file")),
    *((SqlCatalog, name) for name in ("_write_metadata", "_update_and_stage_table")),
    *((Record, name) for name in ("_data",)),
    *((Transaction, name) for name in ("_table", "_updates")),
    *((ManifestEntry, name) for name in SEQUENCE_NUMBERS.values()),
    (UpdateSchema, "_set_column_default_value"),
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


def set_default(update: UpdateSchema, path: tuple[str, ...], value: Any) -> None:
    """New rows that do not say otherwise have this value; `None`: null."""
    update._set_column_default_value(path, value)


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


# ---------------------------------------------------------------- format version 3


class ManifestWriterV3(ManifestWriterV2):
    """PyIceberg has the schema of version 3 and no writer for it."""

    @property
    def version(self) -> Any:
        return NEWEST

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        schema = self._with_partition(NEWEST)
        return AvroOutputFile(self._output_file, schema, "manifest_entry", schema, self._meta)

    def prepare_entry(self, entry: ManifestEntry) -> ManifestEntry:
        _widen(entry.data_file, FILE_FIELDS)
        return super().prepare_entry(entry)


class DeleteManifestWriterV3(ManifestWriterV3, DeleteManifestWriter):
    """The same, of delete files."""


class ManifestListWriterV3(ManifestListWriterV2):
    """Writes manifests that have their row ids already; `first_row_id` is the snapshot's."""

    def __init__(
        self, output: OutputFile, snapshot_id: int, parent_id: int | None, sequence_number: int, first_row_id: int
    ) -> None:
        super().__init__(output, snapshot_id, parent_id, sequence_number, "deflate")
        self._format_version = NEWEST
        self._meta |= {"format-version": str(NEWEST), "first-row-id": str(first_row_id)}

    def __enter__(self) -> ManifestListWriterV3:
        schema = MANIFEST_LIST_FILE_SCHEMAS[NEWEST]
        self._writer = AvroOutputFile(self._output_file, schema, "manifest_file", schema, self._meta)
        self._writer.__enter__()
        return self


def _widen(record: Record, fields: int) -> None:
    """Room for the fields that version 3 added."""
    record._data += [None] * (fields - len(record))


def own_copy(manifest: ManifestFile) -> ManifestFile:
    """A manifest of a list with values of its own: PyIceberg's copies share them, and numbering one numbers both."""
    copied = ManifestFile(*manifest._data)
    _widen(copied, MANIFEST_FIELDS)
    return copied


def file_field(file: DataFile, number: int) -> Any:
    """A field of version 3 of a file; `None` where it was read or made without."""
    return file[number] if len(file) > number else None


def read_manifests(io: FileIO, location: str) -> tuple[ManifestFile, ...]:
    """The manifests of a list of any version; PyIceberg's own reader drops row ids."""
    kinds: Any = {-1: ManifestFile, 508: PartitionFieldSummary}
    schema = MANIFEST_LIST_FILE_SCHEMAS[NEWEST]
    with AvroFile[ManifestFile](io.new_input(location), schema, kinds, {517: ManifestContent}) as reader:
        return tuple(reader)


def read_entries(io: FileIO, manifest: ManifestFile) -> list[ManifestEntry]:
    """The entries of a manifest of any version; PyIceberg's own reader drops row ids and the places of vectors."""
    kinds: Any = {-1: ManifestEntry, 2: DataFile}
    words: Any = {0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent}
    schema = MANIFEST_ENTRY_SCHEMAS[NEWEST]
    with AvroFile[ManifestEntry](io.new_input(manifest.manifest_path), schema, kinds, words) as reader:
        return [_inherit_from_manifest(entry, manifest) for entry in reader]


class KeepingSqlCatalog(SqlCatalog):
    """A SQL catalog of PyIceberg's that also writes metadata of format version 3, whole or not at all."""

    @staticmethod
    def _write_metadata(metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:
        write_metadata(metadata, io.new_output(metadata_path))

    def _update_and_stage_table(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        if current_table is not None:
            require_kept(current_table)
        known = tuple(each for each in updates if not _is_upgrade(each))
        if known == updates:
            return super()._update_and_stage_table(current_table, table_identifier, requirements, updates)
        if current_table is None or current_table.metadata.format_version < 2:
            known = (UpgradeFormatVersionUpdate.model_validate({"format-version": 2}), *known)
        staged = super()._update_and_stage_table(current_table, table_identifier, requirements, known)
        if staged.metadata.format_version >= NEWEST:
            return staged
        place = staged.metadata_location
        return StagedTable(table_identifier, upgraded(staged.metadata), place, staged.io, self)


def _is_upgrade(change: TableUpdate) -> bool:
    return isinstance(change, UpgradeFormatVersionUpdate) and change.format_version == NEWEST


class _InMemory(KeepingSqlCatalog, InMemoryCatalog):
    """The same, of tables in memory."""


def keeping(catalog: SqlCatalog) -> SqlCatalog:
    """The catalog as one that writes version 3 too."""
    catalog.engine.dispose()
    kind = _InMemory if isinstance(catalog, InMemoryCatalog) else KeepingSqlCatalog
    return kind(catalog.name, **catalog.properties)
