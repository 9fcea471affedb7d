"""Partition values of manifests: their types, what a list says of them, and what they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.conversions import from_bytes
from pyiceberg.schema import Schema
from pyiceberg.transforms import Transform, parse_transform
from pyiceberg.types import DoubleType, FloatType, IcebergType, PrimitiveType

from lakeproof.iceberg.inspecting.raw_files import Damaged, Listed, PartitionSummary, damage_said


class PartitionPart(NamedTuple):
    """A partition field: its id, name and transform, the column it is made of, and the type of its values.

    `kind` `None`: nobody can say, because the column or the transform is not known.
    """

    field_id: int
    name: str
    source_id: int
    transform: Transform[Any, Any] | None
    source: IcebergType | None
    kind: PrimitiveType | None


class PartitionTypes:
    """The partition specs of a metadata file, with the types of their values."""

    def __init__(self, words: Mapping[str, Any]) -> None:
        listed = words.get("partition-specs") or [{"spec-id": 0, "fields": words.get("partition-spec") or []}]
        self.specs = {int(spec["spec-id"]): list(spec["fields"]) for spec in listed}
        self.schemas = _schemas(words)
        self._parts: dict[int, tuple[PartitionPart, ...]] = {}

    def fields(self, spec_id: int) -> tuple[PartitionPart, ...]:
        """The fields of a spec."""
        if spec_id not in self._parts:
            fields = self.specs[spec_id]
            self._parts[spec_id] = tuple(self._part(field, 1000 + at) for at, field in enumerate(fields))
        return self._parts[spec_id]

    def column(self, source_id: int) -> IcebergType | None:
        """The type of a column, by the newest schema that has it."""
        for schema in self.schemas:
            if schema.find_column_name(source_id):
                return schema.find_type(source_id)
        return None

    def _part(self, field: Mapping[str, Any], default: int) -> PartitionPart:
        number, source_id = int(field.get("field-id", default)), int(field.get("source-id", 0))
        source = self.column(source_id)
        transform = kind = None
        try:
            with damage_said():
                transform = parse_transform(field["transform"])
                if source is not None and transform.can_transform(source):
                    result = transform.result_type(source)
                    kind = result if isinstance(result, PrimitiveType) else None
        except Damaged:
            pass
        return PartitionPart(number, str(field["name"]), source_id, transform, source, kind)


def _schemas(words: Mapping[str, Any]) -> list[Schema]:
    """The schemas that make sense, the current one first, then from the newest."""
    found = []
    for each in words.get("schemas") or [words.get("schema")]:
        try:
            with damage_said():
                found.append(Schema.model_validate(each))
        except Damaged:
            continue
    current = words.get("current-schema-id")
    return sorted(found, key=lambda schema: (schema.schema_id != current, -schema.schema_id))


def wrong_summaries(line: Listed, entries: pa.Table, fields: Sequence[PartitionPart]) -> Iterator[str]:
    """What a manifest list says of partition values that the manifest does not hold so."""
    said = line.partitions
    if said is None or not entries.num_rows:
        return
    if len(said) != len(fields):
        yield f"its list says {len(said)} partition fields, the spec has {len(fields)}"
        return
    for summary, field in zip(said, fields, strict=True):
        column = entries.column(f"p{field.field_id}") if f"p{field.field_id}" in entries.column_names else None
        if column is not None and field.kind is not None:
            yield from _wrong(summary, column, field)


def _wrong(summary: PartitionSummary, column: pa.ChunkedArray, field: PartitionPart) -> Iterator[str]:
    if column.null_count and summary.contains_null is False:
        yield f"its list says that no `{field.name}` is null, and {column.null_count} are"
    values = column.drop_null()
    if isinstance(field.kind, FloatType | DoubleType):
        values = values.filter(pc.invert(pc.is_nan(values)))
    if not len(values):
        return
    least, most = _ends(values)
    assert field.kind is not None
    low, high = value_of(field.kind, summary.lower), value_of(field.kind, summary.upper)
    if _beyond(low, least) or _beyond(most, high):
        yield f"its list says `{field.name}` from {low} to {high}, and it goes from {least} to {most}"


def _beyond(greater: Any, smaller: Any) -> bool:
    """Whether one is greater than the other; what cannot be compared is not."""
    try:
        return bool(greater is not None and smaller is not None and greater > smaller)
    except TypeError:
        return False


def _ends(values: pa.ChunkedArray) -> tuple[Any, Any]:
    if pa.types.is_boolean(values.type) or pa.types.is_decimal(values.type) or pa.types.is_binary(values.type):
        plain = values.to_pylist()
        return min(plain), max(plain)
    if pa.types.is_fixed_size_binary(values.type) or pa.types.is_large_binary(values.type):
        plain = values.to_pylist()
        return min(plain), max(plain)
    ends = pc.min_max(values)
    return ends["min"].as_py(), ends["max"].as_py()


def value_of(kind: PrimitiveType, raw: bytes | None) -> Any:
    """A bound as the manifests hold such a value; `None`: there is none, or it makes no sense."""
    if raw is None:
        return None
    try:
        with damage_said():
            return from_bytes(kind, raw)
    except Damaged:
        return None
