"""The `table` line of a scenario: how its table is set up, in a few words with commas between them."""

from __future__ import annotations

import re
from typing import NamedTuple

from lakeproof.commit import Isolation, Mode
from lakeproof.errors import InvalidInput
from lakeproof.filters.transforms import name_and_width
from lakeproof.format import PartitionField, PartitionSpec, TableShape


class Table(NamedTuple):
    """How the scenario's table is set up."""

    shape: TableShape
    update_mode: Mode = Mode.MERGE_ON_READ
    delete_mode: Mode = Mode.MERGE_ON_READ
    isolation: Isolation = Isolation.SNAPSHOT
    dynamic_overwrite: bool = False


_WORDS = re.compile(
    r"""\s*(?:
      (?P<command>update|delete)?\s*(?P<mode>merge-on-read|copy-on-write)
    | (?P<isolation>snapshot|serializable)(?:\s+isolation)?
    | format\s+v(?P<version>[123])
    | partitioned\s+by\s+(?P<partition>.+)
    | columns\s+(?P<columns>.+)
    | (?P<insensitive>case-insensitive)
    | (?P<dynamic>dynamic\s+overwrite)
    )\s*$""",
    re.VERBOSE,
)
_HINT = "merge-on-read, copy-on-write, snapshot isolation, serializable, format v2, partitioned by …, columns …"


def table_line(text: str, place: str) -> Table:
    """The table that the words describe."""
    table, before = Table(TableShape(columns=())), set[str]()
    for part in re.split(r",(?![^(\[]*[)\]])", text) if text else ():
        found = _WORDS.match(part)
        if not found:
            raise InvalidInput(f"'{part.strip()}' says nothing of a table", place=place, hint=_HINT)
        said = _told(found)
        if said & before:
            raise InvalidInput(f"'{part.strip()}' was said before", place=place, hint="leave one of them out")
        before |= said
        table = _with(table, found, place)
    return table


def _told(found: re.Match[str]) -> set[str]:
    """What a part of the line decides; the mode of one command may follow that of all."""
    if found["mode"]:
        return {f"mode of {found['command']}"}
    return {name for name, value in found.groupdict().items() if value is not None}


def _with(table: Table, found: re.Match[str], place: str) -> Table:
    if found["mode"]:
        mode = Mode(found["mode"])
        if found["command"] != "delete":
            table = table._replace(update_mode=mode)
        return table if found["command"] == "update" else table._replace(delete_mode=mode)
    if found["isolation"]:
        return table._replace(isolation=Isolation(found["isolation"]))
    if found["dynamic"]:
        return table._replace(dynamic_overwrite=True)
    return table._replace(shape=_shape(table.shape, found, place))


def _shape(shape: TableShape, found: re.Match[str], place: str) -> TableShape:
    if found["version"]:
        return shape._replace(format_version=int(found["version"]))
    if found["partition"]:
        return shape._replace(specs=(_spec(found["partition"], place),))
    if found["columns"]:
        return shape._replace(columns=tuple(found["columns"].split()))
    return shape._replace(case_sensitive=False)


def altered(shape: TableShape, text: str, place: str) -> TableShape:
    """The shape after `set format v3` or `set partitioned by …`: files that are there keep the spec they have."""
    found = _WORDS.match(text)
    if found and found["version"]:
        return shape._replace(format_version=int(found["version"]))
    if found and found["partition"]:
        spec = _spec(found["partition"], place)
        known_columns(spec, shape.columns, place)
        return shape._replace(specs=(*shape.specs, spec))
    raise InvalidInput(f"'{text}' cannot be set", place=place, hint="set format v3, or set partitioned by …")


def known_columns(spec: PartitionSpec, columns: tuple[str, ...], place: str) -> None:
    """Refuse a partition by a column that the table does not have."""
    for field in spec:
        if field.column not in columns:
            hint = f"the columns are {', '.join(columns)}"
            raise InvalidInput(f"There is no column {field.column!r} to partition by", place=place, hint=hint)


def _spec(text: str, place: str) -> PartitionSpec:
    return tuple(_field(word, place) for word in text.split())


def _field(word: str, place: str) -> PartitionField:
    found = re.fullmatch(r"([a-z]+(?:\[\d+\])?)\((\w+)\)", word)
    if not found:
        return PartitionField(word)
    try:
        name_and_width(found[1])
    except InvalidInput as error:
        raise InvalidInput(error.message, place=place, hint=error.hint) from None
    return PartitionField(found[2], found[1])
