"""The metadata files of a repair: manifests and lists with true lines, written under new names when it is applied."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable
from typing import Any

from pyiceberg.conversions import to_bytes
from pyiceberg.io import FileIO
from pyiceberg.types import DecimalType, DoubleType, FloatType, StringType, UUIDType

from lakeproof.iceberg.inspecting.lost_files import put_back
from lakeproof.iceberg.inspecting.partitions import PartitionPart, PartitionTypes
from lakeproof.iceberg.inspecting.raw_files import Damaged, damage_said, read_bytes
from lakeproof.iceberg.mending.avro_records import AvroFile, read_avro, write_avro

KEPT = "lakeproof.repair.kept"
"""The property that names files which a repair replaced: they are no orphans until somebody takes it away."""
COUNTS = {1: (504, 512), 0: (505, 513), 2: (506, 514)}
Record = dict[str, Any]


class Draft:
    """Words, lists and manifests as they are to be; nothing is written before `write`."""

    def __init__(self, store: FileIO, location: str, words: dict[str, Any]) -> None:
        self.store, self.location = store, location
        self.words = copy.deepcopy(words)
        self.manifests: dict[str, AvroFile] = {}
        self.changed: set[str] = set()
        self.lists: dict[int, AvroFile] = {}
        self.copies: list[tuple[str, str]] = []
        self.replaced: list[str] = []
        self.unmended = json.dumps(words, sort_keys=True)

    def manifest(self, path: str) -> AvroFile:
        """A manifest, to be changed in place; say so by `touch`."""
        if path not in self.manifests:
            self.manifests[path] = read_avro(read_bytes(self.store, path))
        return self.manifests[path]

    def touch(self, path: str) -> None:
        """The manifest was changed: it will be written under a new name."""
        self.changed.add(path)

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be written."""
        same = json.dumps(self.words, sort_keys=True) == self.unmended
        return same and not (self.changed or self.lists or self.copies)

    def relist(self, snapshot: dict[str, Any], *, keep: Callable[[list[Record], AvroFile], list[Record]]) -> bool:
        """The snapshot's list with true lines, of those that `keep` leaves; whether any line became another."""
        file = read_avro(read_bytes(self.store, str(snapshot["manifest-list"])))
        before = copy.deepcopy(file.records)
        types = PartitionTypes(self.words)
        made = {int(each["snapshot-id"]): int(each.get("sequence-number") or 0) for each in self.words["snapshots"]}
        lines = keep(file.records, file)
        lines = [line for line in lines if self._true_line(line, file, types, made)]
        if lines == before and not any(line[file.name(500)] in self.changed for line in before):
            return False
        self.lists[int(snapshot["snapshot-id"])] = file._replace(records=lines)
        return True

    def _true_line(self, line: Record, file: AvroFile, types: PartitionTypes, made: dict[int, int]) -> bool:
        """What the manifest holds is what its line says; `False`: nothing is left in it."""
        path = line[file.name(500)]
        manifest = self.manifest(path)
        status, rows = manifest.name(0), manifest.name(2)
        count = manifest.name(2, 103)
        for state, fields in COUNTS.items():
            those = [each for each in manifest.records if each[status] == state]
            for number, value in zip(fields, (len(those), sum(each[rows][count] for each in those)), strict=True):
                if file.has(number):
                    line[file.name(number)] = value
        if file.has(517) and "content" in manifest.header:
            line[file.name(517)] = int(manifest.header["content"] == b"deletes")
        if manifest.header.get("partition-spec-id", b"").isdigit():
            line[file.name(502)] = int(manifest.header["partition-spec-id"])
        data = write_avro(manifest) if path in self.changed else read_bytes(self.store, path)
        line[file.name(501)] = len(data)
        self._numbers(line, file, manifest, made)
        self._summaries(line, file, manifest, types)
        return bool(manifest.records)

    def _numbers(self, line: Record, file: AvroFile, manifest: AvroFile, made: dict[int, int]) -> None:
        if not file.has(515):
            return
        own: int = made.get(line[file.name(503)]) or int(line[file.name(515)] or 0)
        line[file.name(515)] = own
        if not manifest.has(3):
            return
        live = [each[manifest.name(3)] for each in manifest.records if each[manifest.name(0)] != 2]
        least = min((own if each is None else int(each) for each in live), default=own)
        line[file.name(516)] = min(least, line[file.name(516)]) if least >= 0 else line[file.name(516)]

    def _summaries(self, line: Record, file: AvroFile, manifest: AvroFile, types: PartitionTypes) -> None:
        spec = line[file.name(502)]
        if not file.has(507) or spec not in types.specs or line[file.name(507)] is None:
            return
        parts, said = types.fields(spec), line[file.name(507)]
        if len(said) != len(parts):
            return
        inner = {key: next((n for n in names if n in said[0]), "") for key, names in SUMMARY.items()} if said else {}
        partition = manifest.name(2, 102)
        for at, part in enumerate(parts):
            values = [each[manifest.name(2)][partition] for each in manifest.records]
            found = [next((v for k, v in each.items() if k == part.name), None) for each in values]
            _set_summary(said[at], inner, part, found)

    def fresh(self) -> Draft:
        """The same draft for one try: what is written for it leaves this one as it is."""
        mine = copy.copy(self)
        mine.words, mine.replaced = copy.deepcopy(self.words), []
        mine.lists = {n: file._replace(records=copy.deepcopy(file.records)) for n, file in self.lists.items()}
        return mine

    def write(self, written: list[str]) -> None:
        """The files of the repair under new names, noted in `written`; the words then name them."""
        for source, target in self.copies:
            put_back(self.store, source, target)
            self.replaced.append(source)
        names: dict[str, str] = {}
        for path in sorted(self.changed):
            names[path] = self._new("m", written, write_avro(self.manifests[path]))
        for snapshot in self.words["snapshots"]:
            file = self.lists.get(int(snapshot["snapshot-id"]))
            if file is None:
                continue
            for line in file.records:
                line[file.name(500)] = names.get(line[file.name(500)], line[file.name(500)])
            self.replaced.append(str(snapshot["manifest-list"]))
            snapshot["manifest-list"] = self._new(f"snap-{snapshot['snapshot-id']}", written, write_avro(file))
        self.replaced += list(names)
        if self.replaced:
            properties = self.words.setdefault("properties", {})
            kept = [*json.loads(properties.get(KEPT, "[]")), *self.replaced]
            properties[KEPT] = json.dumps(list(dict.fromkeys(kept)))

    def _new(self, kind: str, written: list[str], data: bytes) -> str:
        folder = self.words.get("properties", {}).get("write.metadata.path", f"{self.words['location']}/metadata")
        path = f"{folder.rstrip('/')}/{kind}-repaired-{uuid.uuid4()}.avro"
        self._put(path, data, written)
        return path

    def _put(self, path: str, data: bytes, written: list[str]) -> None:
        written.append(path)
        with self.store.new_output(path).create(overwrite=True) as stream:
            stream.write(data)


SUMMARY = {"null": ("contains_null",), "nan": ("contains_nan",), "low": ("lower_bound",), "high": ("upper_bound",)}


def _set_summary(said: Record, inner: dict[str, str], part: PartitionPart, values: list[Any]) -> None:
    """The true summary of one partition field; of a type that cannot be compared here it stays."""
    kind = part.kind
    real = [each for each in values if each is not None]
    said[inner["null"]] = len(real) < len(values)
    if kind is None or isinstance(kind, UUIDType):
        return
    if isinstance(kind, FloatType | DoubleType):
        real = [each for each in real if each == each]
    if isinstance(kind, DecimalType):
        real = sorted(real, key=lambda raw: int.from_bytes(raw, "big", signed=True))
        real = [_shortest(raw) for raw in real]
    else:
        real = sorted(real, key=lambda each: each.encode() if isinstance(kind, StringType) else each)
    try:
        with damage_said():
            ends = [raw if isinstance(raw, bytes) else to_bytes(kind, raw) for raw in (real[:1] + real[-1:])]
    except Damaged:
        return
    said[inner["low"]], said[inner["high"]] = (ends[0], ends[-1]) if ends else (None, None)


def _shortest(raw: bytes) -> bytes:
    number = int.from_bytes(raw, "big", signed=True)
    return number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)
