"""The table API's own calls in a scenario: files added and removed by name, and the checks that are switched on.

    w1  rowdelta  add-deletes A_del  from 1  exists A  filter data = 'u'  checks no_new_delete_files

A name's ending says what a delete file is: `A_del` deletes positions of data file A, `A_dv` is a deletion vector of A,
`A_eq` an equality delete in A's partition. A data file is declared with its columns' values: `A(data=u, id=0..4)`, or
with its partition alone, as a file without statistics: `A[0]`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lakeproof.commit import Command
from lakeproof.commit.checks import ALL_CHECKS
from lakeproof.commit.policy_text import one_of
from lakeproof.errors import InvalidInput
from lakeproof.format import Value

COMMANDS = {
    "append": Command.INSERT,
    "rowdelta": Command.MERGE,
    "overwrite": Command.OVERWRITE,
    "rewrite": Command.REWRITE,
    "replace-partitions": Command.OVERWRITE_PARTITIONS,
    "delete-files": Command.METADATA_DELETE,
}
API_VERBS = tuple(COMMANDS)
_CLAUSES = (
    "add",
    "remove",
    "add-deletes",
    "remove-deletes",
    "from",
    "exists",
    "filter",
    "row-filter",
    "checks",
    "keep-sequence-number",
)


class FileDeclaration(NamedTuple):
    """A data file by name: (column, lower, upper) of each column whose values are known.

    `partition` is `None` when it follows from the columns' values.
    """

    name: str
    columns: tuple[tuple[str, Value, Value], ...] = ()
    partition: tuple[Value, ...] | None = None
    place: str = ""


class ApiCall(NamedTuple):
    """One call of the table API. `from_snapshot` is `None` when no snapshot is given: all of the history is unseen."""

    verb: str
    add: tuple[FileDeclaration, ...] = ()
    remove: tuple[str, ...] = ()
    add_deletes: tuple[str, ...] = ()
    remove_deletes: tuple[str, ...] = ()
    from_snapshot: int | None = None
    exists: tuple[str, ...] = ()
    filter: str = ""
    row_filter: str = ""
    checks: tuple[str, ...] = ()
    keep_sequence_number: bool = False


def api_call(verb: str, text: str, place: str) -> ApiCall:
    """The call that a scenario line describes."""
    pattern = "|".join(sorted(map(re.escape, _CLAUSES), key=len, reverse=True))
    parts = re.split(rf"(?:^|\s+)({pattern})(?=\s|$)", " " + text)
    if parts[0].strip():
        raise InvalidInput(
            f"'{parts[0].strip()}' is not a clause of {verb}", place=place, hint=f"clauses are {', '.join(_CLAUSES)}"
        )
    given = {parts[i]: parts[i + 1].strip() for i in range(1, len(parts), 2)}
    twice = [word for word in given if parts[1::2].count(word) > 1]
    if twice:
        raise InvalidInput(f"`{twice[0]}` is said twice", place=place, hint="write all its words after one")
    checks = tuple(one_of(word, ALL_CHECKS, "a check", place=place) for word in _words(given.get("checks", "")))
    start = given.get("from", "")
    if start and not start.isdecimal():
        raise InvalidInput("`from` needs the number of a snapshot; 0 is the empty table", place=place)
    return ApiCall(
        verb,
        file_declarations(given.get("add", ""), place),
        _words(given.get("remove", "")),
        _words(given.get("add-deletes", "")),
        _words(given.get("remove-deletes", "")),
        int(start) if start else None,
        _words(given.get("exists", "")),
        given.get("filter", ""),
        given.get("row-filter", ""),
        checks,
        "keep-sequence-number" in given,
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in re.split(r"[,\s]+", text) if word)


def file_declarations(text: str, place: str) -> tuple[FileDeclaration, ...]:
    """Names with their columns or their partition: `A(data=u, id=0..4) B[0] C`."""
    found, end = [], 0
    for match in re.finditer(r"\s*(\w+)(?:\[([^]]*)\])?(?:\(([^)]*)\))?\s*,?", text):
        if match.start() != end:
            break
        end = match.end()
        columns = tuple(_column(part, place) for part in (match[3] or "").split(",") if part.strip())
        partition = None if match[2] is None else tuple(_value(part) for part in match[2].split(","))
        found.append(FileDeclaration(match[1], columns, partition, place))
    if text[end:].strip():
        hint = "write A(data=u, id=0..4) B[0] C"
        raise InvalidInput(f"'{text[end:].strip()}' is not a list of files", place=place, hint=hint)
    return tuple(found)


def _column(text: str, place: str) -> tuple[str, Value, Value]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise InvalidInput(f"'{text.strip()}' is not column=value", place=place)
    low, dots, high = value.partition("..")
    lowest, highest = _value(low), _value(high if dots else low)
    if type(lowest) is not type(highest) or (lowest is not None and lowest > highest):  # type: ignore[operator]
        raise InvalidInput(f"'{value}' is not a range", place=place, hint="write the lower bound first")
    return name, lowest, highest


def _value(word: str) -> Value:
    word = word.strip()
    if word == "null":
        return None
    return int(word) if re.fullmatch(r"-?\d+", word) else word.strip("'")
