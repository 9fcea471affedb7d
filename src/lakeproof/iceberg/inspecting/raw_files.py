"""Manifest lists and manifests as they lie in the store: whole, or `Damaged`; nothing is kept, nothing is guessed."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
from pyiceberg.io import FileIO

from lakeproof.errors import Unavailable
from lakeproof.iceberg.reading.avro import join, read_header
from lakeproof.iceberg.reading.decode import decode_manifests

T = TypeVar("T")
THREADS = 8
LINE = {
    500: "path",
    501: "length",
    502: "spec_id",
    517: "content",
    515: "sequence_number",
    516: "min_sequence_number",
    503: "added_snapshot_id",
    504: "added_files",
    505: "existing_files",
    506: "deleted_files",
    512: "added_rows",
    513: "existing_rows",
    514: "deleted_rows",
    507: "partitions",
    520: "first_row_id",
}
SUMMARY = {509: "contains_null", 518: "contains_nan", 510: "lower", 511: "upper"}
NEEDED = ("path", "length", "spec_id", "added_snapshot_id")


class Damaged(Exception):
    """A file of the table is there and cannot be read; the message says what is wrong with it."""


class Gone(Exception):
    """A file of the table is not there."""


class PartitionSummary(NamedTuple):
    """What a manifest list says of one partition field of a manifest."""

    contains_null: bool | None = None
    contains_nan: bool | None = None
    lower: bytes | None = None
    upper: bytes | None = None


class Listed(NamedTuple):
    """One line of a manifest list; `None`: the list does not say it."""

    path: str
    length: int
    spec_id: int
    added_snapshot_id: int
    content: int = 0
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_files: int | None = None
    existing_files: int | None = None
    deleted_files: int | None = None
    added_rows: int | None = None
    existing_rows: int | None = None
    deleted_rows: int | None = None
    partitions: tuple[PartitionSummary, ...] | None = None
    first_row_id: int | None = None


class RawList(NamedTuple):
    """A manifest list: the words of its header, and its lines."""

    header: dict[str, str]
    lines: tuple[Listed, ...]


class RawManifest(NamedTuple):
    """A manifest: its size, the words of its header, and its entries as columns (`reading/decode.py` names them)."""

    size: int
    header: dict[str, str]
    entries: pa.Table


@contextmanager
def damage_said() -> Iterator[None]:
    """Whatever a decoder does with bytes that are no file of its format becomes `Damaged`."""
    try:
        yield
    except (Damaged, Gone, Unavailable, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # decoders in other languages panic, which Python takes for more than an error
        raise Damaged(((str(error) or type(error).__name__).splitlines() or ["it cannot be read"])[0][:200]) from None


def read_bytes(store: FileIO, path: str) -> bytes:
    """The whole file. `Gone`: it is not there; a store that does not answer is asked again, then `Unavailable`."""
    for attempt in range(3):
        try:
            with store.new_input(path).open() as stream:
                return bytes(stream.read())
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise Gone(path) from error
        except ValueError as error:  # not even the name of a file
            raise Damaged(f"`{path}` cannot be opened: {error}") from None
        except OSError as error:
            if attempt == 2:
                raise Unavailable(f"the storage does not answer: {error}", place=path, hint="try later") from error
            time.sleep(0.2 * (attempt + 1))
    raise AssertionError("unreachable")


def read_list(store: FileIO, path: str) -> RawList:
    """A manifest list."""
    return parse_list(read_bytes(store, path))


def parse_list(data: bytes) -> RawList:
    """A manifest list from its bytes."""
    with damage_said():
        header, frame, schema = _decoded(data)
        names = {LINE[field["field-id"]]: field for field in schema["fields"] if field.get("field-id") in LINE}
        if missing := [name for name in NEEDED if name not in names]:
            raise Damaged(f"its schema lacks {', '.join(missing)}")
        columns = {name: frame[field["name"]].to_list() for name, field in names.items()}
        if "partitions" in columns:
            inner = _summary_names(names["partitions"])
            columns["partitions"] = [_summaries(each, inner) for each in columns["partitions"]]
        return RawList(
            header, tuple(_line(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))
        )


def _line(values: dict[str, Any]) -> Listed:
    if any(values[name] is None for name in NEEDED):
        raise Damaged("a line of it names no manifest")
    defaults = {"content": 0, "sequence_number": 0, "min_sequence_number": 0}
    return Listed(**{**values, **{k: values[k] or 0 for k in defaults if k in values}})


def _summary_names(field: dict[str, Any]) -> dict[str, str]:
    """How the schema spells the parts of a partition summary."""
    kind = field["type"]
    array = next(each for each in kind if isinstance(each, dict)) if isinstance(kind, list) else kind
    parts = array["items"]["fields"]
    return {SUMMARY[part["field-id"]]: part["name"] for part in parts if part.get("field-id") in SUMMARY}


def _summaries(values: Any, names: dict[str, str]) -> tuple[PartitionSummary, ...] | None:
    if values is None:
        return None
    return tuple(PartitionSummary(**{ours: each[theirs] for ours, theirs in names.items()}) for each in values)


def _decoded(data: bytes) -> tuple[dict[str, str], Any, dict[str, Any]]:
    """An Avro file's header, its records as a frame, and its schema."""
    import polars as pl

    words = read_header(data).metadata
    joined, rows = join([data])
    frame = pl.read_avro(io.BytesIO(joined))
    if frame.height != sum(rows):
        raise Damaged(f"it holds {frame.height} records and says {sum(rows)}")
    return _words(words), frame, json.loads(words["avro.schema"])


def _words(header: dict[str, bytes]) -> dict[str, str]:
    return {key: value.decode("utf-8", "replace") for key, value in header.items()}


def read_manifest(store: FileIO, path: str) -> RawManifest:
    """A manifest with all its entries, the deleted ones too."""
    data = read_bytes(store, path)
    with damage_said():
        header = _words(read_header(data).metadata)
        entries, rows = decode_manifests([data])
        if entries.num_rows != sum(rows):
            raise Damaged(f"it holds {entries.num_rows} entries and says {sum(rows)}")
        return RawManifest(len(data), header, entries)


def read_all(paths: Iterable[str], read: Callable[[str], T]) -> dict[str, T | Damaged | Gone]:
    """What `read` gives for each path, or why it cannot; a few at once."""

    def one(path: str) -> T | Damaged | Gone:
        try:
            return read(path)
        except (Damaged, Gone) as error:
            return error

    asked = list(dict.fromkeys(paths))
    with ThreadPoolExecutor(THREADS) as pool:
        return dict(zip(asked, pool.map(one, asked), strict=True))
