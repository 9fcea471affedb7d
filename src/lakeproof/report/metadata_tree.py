"""The metadata of a described table as boxes with links: catalog, metadata file, snapshots, manifests, files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypedDict

from lakeproof.report.tree import Mark
from lakeproof.report.words import in_words

LEVELS = ("Catalog", "Metadata file", "Snapshots", "Manifest lists", "Manifests", "Data and delete files")


class BoxLine(TypedDict):
    """A line inside a box."""

    text: str
    tone: str  # "", "added", "deleted" or "was"


class Box(TypedDict):
    """One thing of the table."""

    id: str
    title: str
    kind: str
    lines: list[BoxLine]
    mark: Mark
    of: list[int]  # the snapshots it belongs to


class BoxRow(TypedDict):
    """Boxes of one sort."""

    title: str
    boxes: list[Box]


class Link(TypedDict):
    """One box refers to another."""

    source: str
    target: str
    kind: str  # "has", or "deletes" from a delete file to its data file


def levels_of(old: dict[str, Any], table: dict[str, Any]) -> list[BoxRow]:
    """The boxes of a table from the catalog down; what `old` had not is marked."""
    boxes = (
        _catalog(old, table),
        _metadata(old, table),
        [_snapshot(old, snapshot) for snapshot in table["snapshots"]],
        _manifest_lists(old, table),
        _manifests(old, table),
        _files(old, table),
    )
    return [{"title": title, "boxes": some} for title, some in zip(LEVELS, boxes, strict=True) if some]


def links_of(table: dict[str, Any], levels: list[BoxRow]) -> list[Link]:
    """Which of these boxes refers to which, each pair once."""
    known = {box["id"] for level in levels for box in level["boxes"]}
    links = [link for link in _links(table) if link["source"] in known and link["target"] in known]
    return list({tuple(link.values()): link for link in links}.values())


def head_of(table: dict[str, Any]) -> dict[str, Any] | None:
    """The snapshot that the catalog points at; where that cannot be told, the last."""
    snapshots: list[dict[str, Any]] = table["snapshots"]
    pointed = [s for s in snapshots if s.get("metadata") is not None and s["metadata"] == table.get("catalog")]
    return (pointed or snapshots or [None])[-1]  # type: ignore[list-item]


def by_id(table: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """The snapshots of a table by id."""
    return {snapshot["id"]: snapshot for snapshot in table["snapshots"]}


def _line(text: str, tone: str = "") -> BoxLine:
    return {"text": text, "tone": tone}


def _box(
    id: str, title: str, kind: str, lines: list[BoxLine], *, mark: Mark = "", of: tuple[int, ...] | list[int] = ()
) -> Box:
    return {"id": id, "title": title, "kind": kind, "lines": lines, "mark": mark, "of": list(of)}


def _catalog(old: dict[str, Any], table: dict[str, Any]) -> list[Box]:
    pointer, was = table.get("catalog"), old.get("catalog")
    if pointer is None:
        return []
    lines = [_line(f"→ {pointer}")]
    if pointer != was and was is not None:
        lines.append(_line(f"was {was}", "was"))
    every = [s["id"] for s in table["snapshots"]]
    return [_box("catalog", table.get("name", "catalog"), "catalog", lines, mark=_mark(pointer, was), of=every)]


def _metadata(old: dict[str, Any], table: dict[str, Any]) -> list[Box]:
    pointer, head = table.get("catalog"), head_of(table)
    if pointer is None:
        return []
    lines = [_line("no snapshot yet" if head is None else f"current: snapshot {head['id']}")]
    every = [s["id"] for s in table["snapshots"]]
    mark: Mark = "new" if pointer != old.get("catalog") else ""
    return [_box("metadata", str(pointer), "metadata", lines, mark=mark, of=every)]


def _mark(now: Any, was: Any) -> Mark:
    return "" if now == was else "new" if was is None else "changed"


def _snapshot(old: dict[str, Any], snapshot: dict[str, Any]) -> Box:
    number = snapshot["id"]
    mark: Mark = "" if number in by_id(old) else "new"
    return _box(
        f"snapshot-{number}", f"snapshot {number}", "snapshot", snapshot_facts(snapshot), mark=mark, of=[number]
    )


def snapshot_facts(snapshot: dict[str, Any]) -> list[BoxLine]:
    """What a snapshot is: operation, sequence number, who committed it."""
    said = (("{}", "operation"), ("sequence number {}", "sequence_number"), ("by {}", "committed_by"))
    return [_line(words.format(snapshot[key])) for words, key in said if snapshot.get(key) not in (None, "")]


def _manifest_lists(old: dict[str, Any], table: dict[str, Any]) -> list[Box]:
    before = {s.get("manifest_list") for s in old["snapshots"]}
    boxes: dict[str, Box] = {}
    for snapshot in table["snapshots"]:
        name = snapshot.get("manifest_list")
        if name:
            box = boxes.setdefault(name, _box(f"list:{name}", name, "manifest list", []))
            box["of"].append(snapshot["id"])
            box["mark"] = "" if name in before else "new"
    return list(boxes.values())


def _manifests(old: dict[str, Any], table: dict[str, Any]) -> list[Box]:
    before = {manifest["name"] for s in old["snapshots"] for manifest in s.get("manifests", [])}
    boxes: dict[str, Box] = {}
    for snapshot in table["snapshots"]:
        for manifest in snapshot.get("manifests", []):
            name = manifest["name"]
            if name not in boxes:
                lines = [_entry(entry) for entry in manifest.get("entries", [])]
                mark: Mark = "" if name in before else "new"
                kind = f"{manifest.get('content', 'data')} manifest"
                boxes[name] = _box(f"manifest:{name}", name, kind, lines, mark=mark)
            boxes[name]["of"].append(snapshot["id"])
    return list(boxes.values())


def _entry(entry: dict[str, Any]) -> BoxLine:
    status = entry.get("status", "existing")
    number = f" · seq {entry['sequence_number']}" if entry.get("sequence_number") is not None else ""
    return _line(f"{status} {entry['file']}{number}", status if status in ("added", "deleted") else "")


def _files(old: dict[str, Any], table: dict[str, Any]) -> list[Box]:
    of: dict[str, list[int]] = {}
    for snapshot in table["snapshots"]:
        for _, entry in _live_entries(snapshot):
            of.setdefault(entry["file"], []).append(snapshot["id"])
    known = {entry["file"] for snapshot in old["snapshots"] for _, entry in _live_entries(snapshot)}
    before, files = old.get("files", {}), table.get("files", {})
    boxes = []
    for name in dict.fromkeys([*of, *files]):
        file = files.get(name, {})
        mark: Mark = "" if name in before or name in known else "new"
        if name in before and name in files and before[name] != file:
            mark = "changed"
        lines = contents(file) if name in of else [*contents(file), _line("not in a snapshot", "was")]
        boxes.append(
            _box(f"file:{name}", name, f"{file.get('kind', 'data')} file", lines, mark=mark, of=of.get(name, []))
        )
    return boxes


def contents(file: dict[str, Any]) -> list[BoxLine]:
    """The rows of a data file, or what a delete file deletes."""
    deleted = set(file.get("deleted", []))
    rows = [
        _line(" ".join(map(in_words, row)), "deleted" if position in deleted else "")
        for position, row in enumerate(file.get("rows", []))
    ]
    deletes = [_line(f"{target} position {place}") for target, place in _targets(file)]
    return rows + deletes


def _targets(file: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for target in file.get("deletes", []):
        name, *place = target if isinstance(target, list) else [target]
        yield str(name), in_words(place[0] if len(place) == 1 else place)


def _live_entries(snapshot: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for manifest in snapshot.get("manifests", []):
        for entry in manifest.get("entries", []):
            if entry.get("status") != "deleted":
                yield manifest, entry


def _links(table: dict[str, Any]) -> Iterator[Link]:
    yield {"source": "catalog", "target": "metadata", "kind": "has"}
    for s in table["snapshots"]:
        box, manifest_list = f"snapshot-{s['id']}", f"list:{s.get('manifest_list')}"
        yield {"source": "metadata", "target": box, "kind": "has"}
        yield {"source": box, "target": manifest_list, "kind": "has"}
        for manifest in s.get("manifests", []):
            yield {"source": manifest_list, "target": f"manifest:{manifest['name']}", "kind": "has"}
        for manifest, entry in _live_entries(s):
            yield {"source": f"manifest:{manifest['name']}", "target": f"file:{entry['file']}", "kind": "has"}
    for name, file in table.get("files", {}).items():
        for target, _ in _targets(file):
            yield {"source": f"file:{name}", "target": f"file:{target}", "kind": "deletes"}
