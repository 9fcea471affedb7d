"""What the judge reads of format version 3, with PyIceberg's decoders and none of ours: vectors and row ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from memory_store import MemoryIO
from pyiceberg.avro.file import AvroFile
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
    PartitionFieldSummary,
)
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

IO = MemoryIO()


class Numbered(NamedTuple):
    """A live data file and the ids of its rows; `None`: it has none."""

    path: str
    first: int | None
    rows: int


class VectorOf(NamedTuple):
    """A live vector: its file and where it lies in it, its data file, and how many rows it says it deletes."""

    path: str
    offset: int
    data_file: str
    rows: int


class State(NamedTuple):
    """What a snapshot of version 3 says of its files."""

    data: tuple[Numbered, ...]
    vectors: tuple[VectorOf, ...]


def state_of(manifest_list: str) -> State:
    """The live data files with their row ids, and the live vectors."""
    kinds: Any = {-1: ManifestFile, 508: PartitionFieldSummary}
    schema = MANIFEST_LIST_FILE_SCHEMAS[3]
    with AvroFile[ManifestFile](IO.new_input(manifest_list), schema, kinds, {517: ManifestContent}) as reader:
        manifests = list(reader)
    data: list[Numbered] = []
    vectors: list[VectorOf] = []
    for manifest in manifests:
        following = manifest[15]
        for entry in _entries(manifest.manifest_path):
            file = entry.data_file
            if entry.status is ManifestEntryStatus.DELETED:
                continue
            if file.content is DataFileContent.DATA:
                first = file[16]
                if first is None and following is not None:
                    first, following = following, following + file.record_count
                data.append(Numbered(file.file_path, first, file.record_count))
            elif file.file_format is FileFormat.PUFFIN:
                vectors.append(VectorOf(file.file_path, file[18], file[17], file.record_count))
    return State(tuple(data), tuple(vectors))


def _entries(manifest: str) -> list[ManifestEntry]:
    kinds: Any = {-1: ManifestEntry, 2: DataFile}
    words: Any = {0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent}
    with AvroFile[ManifestEntry](IO.new_input(manifest), MANIFEST_ENTRY_SCHEMAS[3], kinds, words) as reader:
        return list(reader)


def deleted_by(vectors: Iterable[VectorOf], content: dict[str, bytes]) -> tuple[dict[str, set[int]], list[str]]:
    """The deleted positions by data file, and what is wrong with the vectors."""
    gone: dict[str, set[int]] = {}
    wrong: list[str] = []
    for each in vectors:
        puffin = PuffinFile(content[each.path])
        places = [blob.offset for blob in puffin.footer.blobs]
        found = deletion_vectors_from_puffin_file(puffin)[places.index(each.offset)]
        rows = set(found.to_vector().to_numpy().tolist())
        if each.data_file in gone:
            wrong.append(f"two vectors for {each.data_file}")
        if found.referenced_data_file != each.data_file or len(rows) != each.rows:
            wrong.append(f"the vector of {each.data_file} is another than its manifest says")
        gone[each.data_file] = rows
    return gone, wrong


def wrong_ids(data: Iterable[Numbered], known: dict[str, int], next_row_id: int) -> list[str]:
    """What is wrong with the row ids of a snapshot: none, twice, beyond the next, or others than before."""
    wrong: list[str] = []
    taken: set[int] = set()
    for path, first, rows in data:
        if first is None:
            wrong.append(f"{path} has no row ids")
            continue
        mine = set(range(first, first + rows))
        if mine & taken:
            wrong.append(f"{path} has row ids of another file")
        if mine and max(mine) >= next_row_id:
            wrong.append(f"{path} has row ids from {first} where the next is {next_row_id}")
        if known.setdefault(path, first) != first:
            wrong.append(f"{path} had row ids from {known[path]}, and now from {first}")
        taken |= mine
    return wrong
