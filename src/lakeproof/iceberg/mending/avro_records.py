"""Avro files as plain records, read and written under their own schema: what is not touched stays as it was."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lakeproof.iceberg.inspecting.raw_files import Damaged, damage_said
from lakeproof.iceberg.reading.avro import join, read_header
from lakeproof.iceberg.reading.avro_numbers import read_varint, sized, varint

Schema = Any
BLOCK = 2_000
"""Records that are written as one block."""


class AvroFile(NamedTuple):
    """The words of the header, the schema, and the records; a record is a dictionary by field names."""

    header: dict[str, bytes]
    schema: dict[str, Any]
    records: list[dict[str, Any]]

    def name(self, *ids: int) -> str:
        """The name of a field by its field id, of one inside a record by the ids that lead there."""
        record, name = self.schema, ""
        for number in ids:
            field = next(each for each in record["fields"] if each.get("field-id") == number)
            name, record = field["name"], _record_in(field["type"])
        return str(name)

    def has(self, *ids: int) -> bool:
        """Whether the schema has that field."""
        try:
            self.name(*ids)
        except (StopIteration, KeyError):
            return False
        return True


def _record_in(kind: Schema) -> dict[str, Any]:
    kinds = kind if isinstance(kind, list) else [kind]
    found: dict[str, Any] = next((each for each in kinds if isinstance(each, dict)), {})
    return found


def read_avro(data: bytes) -> AvroFile:
    """All records of an Avro file."""
    with damage_said():
        header = read_header(data).metadata
        joined, counts = join([data])
        schema = json.loads(header["avro.schema"])
        container = read_header(joined)
        reader = _Reader(joined, container.body)
        named: dict[str, Schema] = {}
        _collect(schema, named)
        total = sum(counts)
        if total:
            reader.long()
            reader.long()
        return AvroFile(header, schema, [reader.value(schema, named) for _ in range(total)])


def write_avro(file: AvroFile) -> bytes:
    """The file with these records, under its own schema and with the words of its header."""
    sync = os.urandom(16)
    words = {key: value for key, value in file.header.items() if key != "avro.codec"}
    words["avro.codec"] = b"deflate"
    named: dict[str, Schema] = {}
    _collect(file.schema, named)
    parts = [b"Obj\x01", varint(len(words))]
    for key, text in words.items():
        parts += [sized(key.encode()), sized(text)]
    parts += [b"\0", sync]
    for start in range(0, len(file.records), BLOCK):
        records = file.records[start : start + BLOCK]
        body = b"".join(_encoded(record, file.schema, named) for record in records)
        packed = zlib.compress(body)[2:-4]
        parts += [varint(len(records)), sized(packed), sync]
    return b"".join(parts)


def _collect(kind: Schema, named: dict[str, Schema]) -> None:
    """Types that have a name may be meant by it later."""
    if isinstance(kind, list):
        for each in kind:
            _collect(each, named)
    elif isinstance(kind, dict):
        if kind.get("name") and kind["type"] in ("record", "fixed", "enum"):
            named[kind["name"]] = kind
        for field in kind.get("fields") or ():
            _collect(field["type"], named)
        for inner in ("items", "values"):
            if inner in kind:
                _collect(kind[inner], named)
        if isinstance(kind["type"], dict | list):
            _collect(kind["type"], named)


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise Damaged("a record is cut")
        self.at += count
        return self.data[self.at - count : self.at]

    def long(self) -> int:
        try:
            value, self.at = read_varint(self.data, self.at)
        except IndexError:
            raise Damaged("a record is cut") from None
        return value

    def value(self, kind: Schema, named: Mapping[str, Schema]) -> Any:
        if isinstance(kind, list):
            return self.value(kind[self.long()], named)
        word = kind["type"] if isinstance(kind, dict) else kind
        if isinstance(word, dict | list):
            return self.value(word, named)
        if word in named:
            return self.value(named[word], named)
        if word == "record":
            return {field["name"]: self.value(field["type"], named) for field in kind["fields"]}
        if word in ("array", "map"):
            return self._several(kind, word, named)
        return self._plain(kind, word)

    def _several(self, kind: Schema, word: str, named: Mapping[str, Schema]) -> Any:
        found: list[Any] = []
        while count := self.long():
            if count < 0:
                count = -count
                self.long()
            for _ in range(count):
                if word == "array":
                    found.append(self.value(kind["items"], named))
                else:
                    key = self.take(self.long()).decode()
                    found.append((key, self.value(kind["values"], named)))
        return found if word == "array" else dict(found)

    def _plain(self, kind: Schema, word: str) -> Any:
        if word == "null":
            return None
        if word == "boolean":
            return self.take(1) != b"\0"
        if word in ("int", "long", "enum"):
            return self.long()
        if word == "float":
            return struct.unpack("<f", self.take(4))[0]
        if word == "double":
            return struct.unpack("<d", self.take(8))[0]
        if word == "bytes":
            return self.take(self.long())
        if word == "string":
            return self.take(self.long()).decode()
        if word == "fixed":
            return self.take(int(kind["size"]))
        raise Damaged(f"its schema has a type `{word}`")


def _encoded(value: Any, kind: Schema, named: Mapping[str, Schema]) -> bytes:
    if isinstance(kind, list):
        at = _branch(value, kind)
        return varint(at) + _encoded(value, kind[at], named)
    word = kind["type"] if isinstance(kind, dict) else kind
    if isinstance(word, dict | list):
        return _encoded(value, word, named)
    if word in named and word not in ("record", "array", "map"):
        return _encoded(value, named[word], named)
    if word == "record":
        return b"".join(_encoded(value[field["name"]], field["type"], named) for field in kind["fields"])
    if word == "array":
        return _blocks(value, [_encoded(each, kind["items"], named) for each in value])
    if word == "map":
        pairs = [sized(key.encode()) + _encoded(each, kind["values"], named) for key, each in value.items()]
        return _blocks(value, pairs)
    return _plain(value, word)


def _branch(value: Any, kinds: Sequence[Schema]) -> int:
    """The branch of a union: Iceberg's unions are of null and one other type."""
    null = kinds.index("null")
    return null if value is None else next(at for at in range(len(kinds)) if at != null)


def _blocks(values: Any, encoded: list[bytes]) -> bytes:
    return (varint(len(values)) + b"".join(encoded) if values else b"") + b"\0"


def _plain(value: Any, word: str) -> bytes:
    if word == "null":
        return b""
    if word == "boolean":
        return b"\1" if value else b"\0"
    if word in ("int", "long", "enum"):
        return varint(int(value))
    if word in ("float", "double"):
        return struct.pack("<f" if word == "float" else "<d", value)
    if word == "bytes":
        return sized(bytes(value))
    if word == "string":
        return sized(value.encode())
    return bytes(value)
