"""A described table as what is drawn: its metadata from the catalog down to the files, and what readers see.

Draws the shape that table models describe: `{"catalog", "snapshots": […], "columns", "files": {…}}`. Only `snapshots`
must be there; what else is missing is left out of the picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypedDict

from lakeproof.report.metadata_tree import BoxRow, Link, by_id, contents, head_of, levels_of, links_of, snapshot_facts
from lakeproof.report.tree import Mark, News
from lakeproof.report.words import in_words


class SeenRow(TypedDict):
    """A row with its cells in words."""

    cells: list[str]
    tone: str  # "extra": should not be seen; "missing": should be


class Reader(TypedDict):
    """What a reader of one snapshot sees, and what it should see."""

    snapshot: int
    title: str
    command: str
    rows: list[SeenRow]
    expected: list[SeenRow]
    agrees: bool
    head: bool
    mark: Mark


class TableView(TypedDict):
    """Everything that is drawn of a table at one moment."""

    levels: list[BoxRow]
    links: list[Link]
    head: int | None
    columns: list[str]
    readers: list[Reader]


def table_in(state: Any) -> dict[str, Any] | None:
    """The table that a state describes; None: it describes something else."""
    table = state.get("table") if isinstance(state, dict) else None
    if isinstance(table, dict) and isinstance(table.get("snapshots"), list):
        return table
    return None


def table_view(before: dict[str, Any] | None, table: dict[str, Any]) -> TableView:
    """The table as boxes, links and readers; what `before` had not is marked."""
    old = before if before is not None else table
    head, levels = head_of(table), levels_of(old, table)
    readers = [_reader(old, s, s is head) for s in table["snapshots"] if "rows" in s]
    if not table["snapshots"] and "rows" in table:  # a model that keeps no history
        readers = [{**_reader(old, {**table, "id": 0}, True), "title": "the table", "mark": ""}]
    columns = [str(column) for column in table.get("columns", [])]
    return {
        "levels": levels,
        "links": links_of(table, levels),
        "head": None if head is None else head["id"],
        "columns": columns,
        "readers": readers,
    }


def table_news(before: dict[str, Any], table: dict[str, Any]) -> Iterator[News]:
    """What happened to a table, in a reader's order: the pointer, the snapshots, the rows, the files."""
    if before.get("catalog") != table.get("catalog"):
        yield _news("catalog", before.get("catalog") or "", table.get("catalog") or "")
    for number in dict.fromkeys([*by_id(before), *by_id(table)]):
        if number not in by_id(before) or number not in by_id(table):
            yield _news(f"snapshot {number}", *(_about(by_id(some).get(number)) for some in (before, table)))
    yield from _news_of_reads(before, table)
    for name, file in table.get("files", {}).items():
        if name not in before.get("files", {}):
            yield _news(name, "", _file_in_words(file))


def _news_of_reads(before: dict[str, Any], table: dict[str, Any]) -> Iterator[News]:
    head, old = head_of(table), head_of(before)
    sees = _rows_in_words([] if head is None else head.get("rows", []))
    saw = _rows_in_words([] if old is None else old.get("rows", []))
    wrong = [s for number, s in by_id(table).items() if not _agrees(s) and _agrees(by_id(before).get(number, {}))]
    if head is not None and (sees != saw or wrong):
        yield _news("a reader sees", "" if sees == saw else saw, sees)
    for snapshot in wrong:
        where = "it should see" if snapshot is head else f"a reader of snapshot {snapshot['id']} should see"
        yield _news(where, "", _rows_in_words(snapshot["expected"]), "bad")


def _news(what: str, before: str, after: str, tone: str = "") -> News:
    return {"what": what, "before": before, "after": after, "tone": tone}


def _about(snapshot: dict[str, Any] | None) -> str:
    return "" if snapshot is None else ", ".join(line["text"] for line in snapshot_facts(snapshot)) or "there"


def _rows_in_words(rows: list[Any]) -> str:
    return in_words([" ".join(map(in_words, row)) for row in rows]) if rows else "no row"


def _file_in_words(file: dict[str, Any]) -> str:
    return f"{file.get('kind', 'data')}: " + ", ".join(line["text"] for line in contents(file))


def _agrees(snapshot: dict[str, Any]) -> bool:
    return "expected" not in snapshot or _sorted(snapshot["expected"]) == _sorted(snapshot.get("rows", []))


def _sorted(rows: list[Any]) -> list[str]:
    return sorted(in_words(row) for row in rows)


def _reader(old: dict[str, Any], snapshot: dict[str, Any], head: bool) -> Reader:
    rows = snapshot["rows"]
    expected = snapshot.get("expected", rows)
    return {
        "snapshot": snapshot["id"],
        "title": f"snapshot {snapshot['id']}",
        "command": snapshot.get("command") or "",
        "rows": _compared(rows, expected, "extra"),
        "expected": _compared(expected, rows, "missing"),
        "agrees": _agrees(snapshot),
        "head": head,
        "mark": "" if snapshot["id"] in by_id(old) else "new",
    }


def _compared(rows: list[list[Any]], others: list[list[Any]], tone: str) -> list[SeenRow]:
    """The rows, with those marked that the others do not have (as often)."""
    left = _sorted(others)
    seen: list[SeenRow] = []
    for row in rows:
        known = in_words(row) in left
        if known:
            left.remove(in_words(row))
        seen.append({"cells": [in_words(cell) for cell in row], "tone": "" if known else tone})
    return seen
