"""Table metadata of format version 3: written whole, made of older metadata, and refused where a part would be lost.

PyIceberg reads it and refuses to write it; what its model does not know (encryption keys) would silently be gone.
"""

from __future__ import annotations

import gzip
import json
import re
from typing import Any, Literal

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.serializers import Compressor, FromInputFile, ToOutputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataV3
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import IcebergBaseModel

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.failures import reading_file
from lakeproof.iceberg.reading.lru import Recent

NEWEST: Literal[3] = 3
ENCRYPTED_BY = "encryption.key-id"
_UNREAD_TYPES = re.compile(r"variant|geometry.*|geography.*")
_DEFAULTS = ("initial-default", "write-default")  # read as values, which engines spell in ways of their own
_SAME_WHEN_ABSENT: tuple[Any, ...] = ({}, [], None)
_losses: Recent[tuple[str, ...]] = Recent(256)


def read_metadata(file: InputFile) -> TableMetadata:
    """The metadata; what PyIceberg does not understand is named in one sentence."""
    with reading_file(file.location):
        try:
            return FromInputFile.table_metadata(file)
        except ValidationError:
            told = _not_understood(_raw(file))
            if told is None:
                raise
            raise InvalidInput(told, place=file.location, hint="use an engine that has it") from None


def write_metadata(metadata: TableMetadata, output: OutputFile) -> None:
    """A metadata file of whatever version."""
    if not isinstance(metadata, TableMetadataV3):
        ToOutputFile.table_metadata(metadata, output)
        return
    data = Compressor.get_compressor(output.location).bytes_compressor()(metadata_json(metadata).encode())
    with output.create() as stream:
        stream.write(data)
    _losses.get(output.location, tuple)  # nothing in it is unknown


def metadata_json(metadata: TableMetadataV3) -> str:
    """The JSON of the metadata: PyIceberg's model is whole, and only its last step refuses."""
    whole = metadata.model_copy(update={"next_row_id": next_row_id(metadata)})
    return IcebergBaseModel.model_dump_json(whole)


def next_row_id(metadata: TableMetadata) -> int:
    """The first row id that nobody was given; a table that is just being made does not say it yet."""
    said = getattr(metadata, "next_row_id", None)
    return max([_end(each) for each in metadata.snapshots], default=0) if said is None else int(said)


def _end(snapshot: Snapshot) -> int:
    return (snapshot.first_row_id or 0) + (snapshot.added_rows or 0)


def upgraded(metadata: TableMetadata) -> TableMetadata:
    """Older metadata as version 3. Snapshots and manifests stay: their rows get ids with the next commit."""
    given = json.loads(IcebergBaseModel.model_dump_json(metadata))
    for old in ("schema", "partition-spec"):  # of version 1
        given.pop(old, None)
    return TableMetadataV3.model_validate({**given, "format-version": NEWEST, "next-row-id": next_row_id(metadata)})


# ---------------------------------------------------------------- what is refused


def require_kept(table: Table) -> None:
    """Refuse to write a table of which a part would be lost: nothing is written before this is asked."""
    place = f"table {'.'.join(table.name())}"
    if table.properties.get(ENCRYPTED_BY):
        raise InvalidInput(f"the table is encrypted ({ENCRYPTED_BY}), which is not written here", place=place)
    location = table.metadata_location
    if table.metadata.format_version < NEWEST or not isinstance(table.catalog, SqlCatalog):
        return  # a server writes its metadata itself, and is only told what changes
    lost = _losses.get(location, lambda: _lost_at(table.io, location, table.metadata))
    if lost:
        raise InvalidInput(
            f"the table's metadata says `{lost[0]}`, which would be lost if it were written here",
            place=place,
            hint="write it with the engine that set this",
        )


def _lost_at(io: FileIO, location: str, metadata: TableMetadata) -> tuple[str, ...]:
    try:
        raw = _raw(io.new_input(location))
    except FileNotFoundError:  # replaced and removed meanwhile: the swap will tell
        return ()
    return lost(raw, json.loads(IcebergBaseModel.model_dump_json(metadata)))


def lost(raw: Any, again: Any, place: str = "") -> tuple[str, ...]:
    """What was said in `raw` and is not in `again`, as dotted names; how numbers are spelled does not matter."""
    if isinstance(raw, dict) and isinstance(again, dict):
        found: list[str] = []
        for name, value in raw.items():
            here = f"{place}.{name}".lstrip(".")
            if name in again:
                is_default = name in _DEFAULTS and again[name] is not None
                found += () if is_default else lost(value, again[name], here)
            elif value not in _SAME_WHEN_ABSENT and (name, value) != ("current-snapshot-id", -1):
                found.append(here)
        return tuple(found)
    if isinstance(raw, list) and isinstance(again, list) and len(raw) == len(again):
        return tuple(name for one, other in zip(raw, again, strict=True) for name in lost(one, other, place))
    return () if raw == again or str(raw) == str(again) else (place,)


def _raw(file: InputFile) -> dict[str, Any]:
    with file.open() as stream:
        data = bytes(stream.read())
    found: dict[str, Any] = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    return found


def _not_understood(raw: dict[str, Any]) -> str | None:
    """What in the metadata is beyond us, if it is one of the things that version 3 (or a later one) brought."""
    version = raw.get("format-version", 0)
    if version > NEWEST:
        return f"the table has format version {version}; {NEWEST} is the newest that is known here"
    for schema in raw.get("schemas", ()):
        for field in _fields(schema):
            kind = field.get("type")
            if isinstance(kind, str) and _UNREAD_TYPES.fullmatch(kind):
                return f"column `{field.get('name')}` is of type {kind}, which is neither read nor written"
    for spec in raw.get("partition-specs", ()):
        for field in spec.get("fields", ()):
            if "source-ids" in field:
                said = f"the partition field `{field.get('name')}` is a transform of several columns"
                return f"{said}, which is neither read nor written"
    return None


def _fields(kind: Any) -> list[dict[str, Any]]:
    """Every field of a schema, those inside of structs, lists and maps too."""
    found: list[dict[str, Any]] = []
    if isinstance(kind, dict):
        for field in kind.get("fields", ()):
            found += [field, *_fields(field.get("type"))]
        for inner in ("element", "key", "value"):
            if inner in kind:
                found += [{"name": inner, "type": kind[inner]}, *_fields(kind[inner])]
    return found
