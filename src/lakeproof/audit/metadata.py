"""The metadata file against itself: ids that name nothing, lines of parents, logs, counters that were left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from typing import Any

from lakeproof.audit.findings import Finding, find
from lakeproof.audit.kinds import MAY, NOTHING, ROWS

Words = Mapping[str, Any]
MINUTE_MS = 60_000
"""Clocks of two writers may differ; Iceberg itself allows a minute."""
VERSIONS = (1, 2, 3)
MAIN = "main"


def judge_metadata(words: Words) -> list[Finding]:
    """Everything that the metadata file says against itself; words of another shape are one finding."""
    try:
        return [finding for judge in JUDGES for finding in judge(words)]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        text = f"it lacks what the format asks for, or has it in another shape: {type(error).__name__} {error}"
        return [find("unreadable_metadata", text[:300])]


def snapshots_in(words: Words) -> list[dict[str, Any]]:
    """The snapshots, in the order in which they are written."""
    return list(words.get("snapshots") or [])


def current_id(words: Words) -> int | None:
    """The current snapshot; `None`: the table is empty (some writers say -1)."""
    found = words.get("current-snapshot-id")
    return None if found in (None, -1) else int(found)


def refs_in(words: Words) -> dict[str, dict[str, Any]]:
    """Branches and tags; version 1 knows main alone, and only by the current snapshot."""
    refs = dict(words.get("refs") or {})
    current = current_id(words)
    if MAIN not in refs and current is not None:
        refs[MAIN] = {"snapshot-id": current, "type": "branch"}
    return refs


def heads_in(words: Words) -> tuple[int, ...]:
    """The snapshots that a reader of a branch, a tag or the table comes to."""
    current = current_id(words)
    heads = [int(ref["snapshot-id"]) for ref in refs_in(words).values()]
    return tuple(dict.fromkeys([*heads, *(() if current is None else (current,))]))


def parents_in(words: Words) -> dict[int, int | None]:
    """The parent that each snapshot names."""
    return {int(each["snapshot-id"]): each.get("parent-snapshot-id") for each in snapshots_in(words)}


def line_of(parents: Mapping[int, int | None], head: int | None) -> list[int]:
    """The snapshots from a head down the line of parents; it ends where one is not there, or comes again."""
    line: dict[int, None] = {}
    while head is not None and head in parents and head not in line:
        line[head] = None
        head = parents[head]
    return list(line)


def _shape(words: Words) -> Iterator[Finding]:
    if words["format-version"] not in VERSIONS:
        yield find("format_version", f"the format version is {words['format-version']}, which nobody knows")
    if not str(words["location"]) or (words["format-version"] > 1 and not words["table-uuid"]):
        yield find("unreadable_metadata", "the table has no location or no uuid")
    if words["format-version"] == 3 and not isinstance(words.get("next-row-id"), int):
        yield find("next_row_id", "a table of format version 3 must say the next row id")


def _refs(words: Words) -> Iterator[Finding]:
    known, current = parents_in(words), current_id(words)
    for name, ref in refs_in(words).items():
        at = int(ref["snapshot-id"])
        if at not in known and not (name == MAIN and at == current):
            text = f"`{name}` names snapshot {at}, which is not in the table"
            yield find("ref_to_nowhere", text, snapshots=[at], severity=ROWS if name == MAIN else "")
    main = (words.get("refs") or {}).get(MAIN)
    if current is not None and current not in known:
        yield find(
            "current_snapshot", f"the current snapshot is {current}, which is not in the table", snapshots=[current]
        )
    elif main is not None and main["snapshot-id"] != current:
        text = f"the current snapshot is {current}, and main's head {main['snapshot-id']}: readers disagree"
        pair = [main["snapshot-id"]] if current is None else [main["snapshot-id"], current]
        yield find("current_snapshot", text, snapshots=pair)


def _snapshot_ids(words: Words) -> Iterator[Finding]:
    for number, count in Counter(int(each["snapshot-id"]) for each in snapshots_in(words)).items():
        if count > 1:
            yield find("snapshot_twice", f"{count} snapshots have the id {number}", snapshots=[number])


def _parents(words: Words) -> Iterator[Finding]:
    parents = parents_in(words)
    done: set[int] = set()
    for number in parents:
        walked: dict[int, None] = {}
        at: int | None = number
        while at is not None and at in parents and at not in walked and at not in done:
            walked[at] = None
            at = parents[at]
        if at is not None and at in walked:
            circle = list(walked)[list(walked).index(at) :]
            yield find("parent_cycle", f"from snapshot {at} the parents lead back to it", snapshots=circle)
        done |= set(walked)


def _order(words: Words) -> Iterator[Finding]:
    """A child is younger than its parent: by its sequence number, and by its clock."""
    by_id = {int(each["snapshot-id"]): each for each in snapshots_in(words)}
    for number, child in by_id.items():
        parent = by_id.get(child.get("parent-snapshot-id") or -1)
        if parent is None or parent is child:
            continue
        pair = [int(parent["snapshot-id"]), number]
        newer, older = int(child.get("sequence-number") or 0), int(parent.get("sequence-number") or 0)
        if newer and newer <= older:
            text = f"snapshot {number} has sequence number {newer}, its parent {older}"
            yield find("sequence_numbers", text, snapshots=pair)
        if child["timestamp-ms"] < parent["timestamp-ms"] - MINUTE_MS:
            text = f"snapshot {number} was made at {child['timestamp-ms']}, its parent at {parent['timestamp-ms']}"
            yield find("timestamps", text, snapshots=pair)


def _numbers(words: Words) -> Iterator[Finding]:
    """Sequence numbers are given once, and the last one is known."""
    if words["format-version"] < 2:
        return
    given: dict[int, list[int]] = {}
    for each in snapshots_in(words):
        given.setdefault(int(each.get("sequence-number") or 0), []).append(int(each["snapshot-id"]))
    last, most = int(words["last-sequence-number"]), max(given, default=0)
    if last < most:
        text = f"the last sequence number is {last}, and snapshot {given[most][0]} has {most}"
        yield find("last_sequence_number", text, snapshots=given[most])
    parents = parents_in(words)
    for number, several in given.items():
        of_a_line = {parents[each] for each in several} & set(several)  # `_order` says it of a child and its parent
        if number and len(several) > 1 and not of_a_line:
            yield find("sequence_numbers", f"{len(several)} snapshots have sequence number {number}", snapshots=several)


def _clock(words: Words) -> Iterator[Finding]:
    said = int(words["last-updated-ms"])
    late = [each for each in snapshots_in(words) if each["timestamp-ms"] > said + MINUTE_MS]
    if late:
        text = f"the metadata was last changed at {said}, before {len(late)} of its snapshots"
        yield find("timestamps", text, snapshots=[int(each["snapshot-id"]) for each in late], severity=NOTHING)


def _snapshot_log(words: Words) -> Iterator[Finding]:
    log, known = words.get("snapshot-log") or [], parents_in(words)
    named = [int(each["snapshot-id"]) for each in log]
    if strange := [number for number in named if number not in known]:
        yield find("snapshot_log", f"the log names {len(strange)} snapshots that are not there", snapshots=strange)
    for older, newer in pairwise(log):
        if newer["timestamp-ms"] < older["timestamp-ms"] - MINUTE_MS:
            pair = [int(older["snapshot-id"]), int(newer["snapshot-id"])]
            yield find("snapshot_log", "an entry of the log is older than the one before it", snapshots=pair)
            break
    current = current_id(words)
    if named and current in known and named[-1] != current:
        text = f"the log ends with snapshot {named[-1]}, and the current one is {current}"
        yield find("snapshot_log", text, snapshots=[named[-1], int(current or 0)])


def _metadata_log(words: Words) -> Iterator[Finding]:
    log = words.get("metadata-log") or []
    for older, newer in pairwise(log):
        if newer["timestamp-ms"] < older["timestamp-ms"] - MINUTE_MS:
            pair = [older["metadata-file"], newer["metadata-file"]]
            yield find("metadata_log", "an entry of the log is older than the one before it", files=pair)
            break
    counted = Counter(str(each["metadata-file"]) for each in log)
    if twice := [file for file, count in counted.items() if count > 1]:
        yield find("metadata_log", f"{len(twice)} metadata files are in the log twice", files=twice)


def _ids(kind: str, key: str, inner: str, default: str) -> Any:
    """A judge of one list of definitions and of what names one of them."""

    def judge(words: Words) -> Iterator[Finding]:
        there = Counter(int(each[inner]) for each in words.get(key) or [])
        said = words.get(default)
        if said is not None and there and said not in there:
            yield find(kind, f"{default} is {said}, and there is no such one in {key}")
        if twice := [number for number, count in there.items() if count > 1]:
            yield find(kind, f"{key} has two of id {twice[0]}")

    return judge


def _schemas_of_snapshots(words: Words) -> Iterator[Finding]:
    """Every snapshot's schema is there."""
    known = {each["schema-id"] for each in words.get("schemas") or []}
    lost = [each for each in snapshots_in(words) if known and each.get("schema-id") not in (None, *known)]
    if lost:
        text = f"{len(lost)} snapshots were written under schema {lost[0]['schema-id']}, which is not there"
        yield find("schema_ids", text, snapshots=[int(each["snapshot-id"]) for each in lost], severity=MAY)


def field_ids_of(kind: Any) -> Iterator[int]:
    """The field ids in a schema or a type, nested ones too."""
    if not isinstance(kind, Mapping):
        return
    for field in kind.get("fields") or []:
        yield int(field["id"])
        yield from field_ids_of(field["type"])
    for key, inner in (("element-id", "element"), ("key-id", "key"), ("value-id", "value")):
        if key in kind:
            yield int(kind[key])
            yield from field_ids_of(kind[inner])


def _fields(words: Words) -> Iterator[Finding]:
    schemas, known = words.get("schemas") or [words["schema"]], set[int]()
    for schema in schemas:
        found = Counter(field_ids_of(schema))
        known |= set(found)
        if twice := [number for number, count in found.items() if count > 1]:
            yield find("field_ids", f"schema {schema.get('schema-id', 0)} has two columns of id {twice[0]}")
        if lost := [each for each in schema.get("identifier-field-ids") or [] if each not in found]:
            text = f"schema {schema.get('schema-id', 0)} takes column {lost[0]} for a key, and there is none"
            yield find("field_ids", text, severity=MAY)
    if known and int(words["last-column-id"]) < max(known):
        yield find("last_column_id", f"the last column id is {words['last-column-id']}, and {max(known)} is in use")


def _specs(words: Words) -> Iterator[Finding]:
    specs = words.get("partition-specs") or []
    fields = list(chain.from_iterable(spec["fields"] for spec in specs))
    used = max((int(field.get("field-id", 0)) for field in fields), default=0)
    last = words.get("last-partition-id")
    if last is not None and int(last) < used:
        yield find("last_partition_id", f"the last partition field id is {last}, and {used} is in use")
    default = next((spec for spec in specs if spec["spec-id"] == words.get("default-spec-id")), None)
    known = set(chain.from_iterable(field_ids_of(schema) for schema in words.get("schemas") or []))
    for field in default["fields"] if default is not None else ():
        if known and field.get("source-id", next(iter(known))) not in known:
            text = f"partition field `{field['name']}` is made of column {field['source-id']}, which is in no schema"
            yield find("field_ids", text)


def _statistics(words: Words) -> Iterator[Finding]:
    known = parents_in(words)
    described = [*(words.get("statistics") or []), *(words.get("partition-statistics") or [])]
    if lost := [each for each in described if int(each["snapshot-id"]) not in known]:
        text = f"{len(lost)} statistics are of snapshots that are not there"
        yield find("statistics", text, files=[str(each["statistics-path"]) for each in lost])


def _row_ids(words: Words) -> Iterator[Finding]:
    """Version 3: ids are given away in order, and what a snapshot took is below the next one."""
    if words["format-version"] < 3:
        return
    following = int(words.get("next-row-id") or 0)
    for each in snapshots_in(words):
        first, added = each.get("first-row-id"), int(each.get("added-rows") or 0)
        if first is not None and int(first) + added > following:
            text = f"the next row id is {following}, and snapshot {each['snapshot-id']} took {added} from {first}"
            yield find("next_row_id", text, snapshots=[int(each["snapshot-id"])])
    by_id = {int(each["snapshot-id"]): each for each in snapshots_in(words)}
    for number, child in by_id.items():
        parent = by_id.get(child.get("parent-snapshot-id") or -1)
        ends = None if parent is None or parent.get("first-row-id") is None else _end(parent)
        begins = child.get("first-row-id")
        if parent is not None and ends is not None and begins is not None and int(begins) < ends:
            text = f"snapshot {number} begins with row id {begins}, its parent ends with {ends - 1}"
            yield find("next_row_id", text, snapshots=[int(parent["snapshot-id"]), number], severity=ROWS)


def _end(snapshot: Words) -> int:
    return int(snapshot["first-row-id"]) + int(snapshot.get("added-rows") or 0)


JUDGES = (
    _shape,
    _refs,
    _snapshot_ids,
    _parents,
    _order,
    _numbers,
    _clock,
    _snapshot_log,
    _metadata_log,
    _ids("schema_ids", "schemas", "schema-id", "current-schema-id"),
    _ids("partition_spec_ids", "partition-specs", "spec-id", "default-spec-id"),
    _ids("sort_order_ids", "sort-orders", "order-id", "default-sort-order-id"),
    _schemas_of_snapshots,
    _fields,
    _specs,
    _statistics,
    _row_ids,
)
