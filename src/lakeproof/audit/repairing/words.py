"""What can be set right in the metadata file alone. Each mender changes the words, and says what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lakeproof.audit.findings import Finding
from lakeproof.audit.holdings import Holdings
from lakeproof.audit.metadata import MAIN, current_id, field_ids_of, heads_in, parents_in, snapshots_in
from lakeproof.iceberg.inspecting.raw_files import RawList
from lakeproof.iceberg.upkeep.table_on_disk import sizes_of

Words = dict[str, Any]
Mender = Callable[[Words, Holdings], Iterator[str]]


def _refs(words: Words, _holdings: Holdings) -> Iterator[str]:
    known, refs = parents_in(words), words.get("refs") or {}
    for name, ref in list(refs.items()):
        if int(ref["snapshot-id"]) not in known and name != MAIN:
            del refs[name]
            yield f"drop the {ref.get('type', 'branch')} `{name}`, which names no snapshot"


def _current(words: Words, _holdings: Holdings) -> Iterator[str]:
    """The log says which snapshot was made current last; else main's head is taken, else the newest."""
    known, main = parents_in(words), (words.get("refs") or {}).get(MAIN)
    said = [None if main is None else int(main["snapshot-id"]), current_id(words)]
    log = [int(each["snapshot-id"]) for each in words.get("snapshot-log") or []]
    last = log[-1] if log else None
    newest = max(snapshots_in(words), key=lambda each: int(each.get("sequence-number") or 0), default=None)
    choices = [*([last] if last in said else []), *said, last, None if newest is None else int(newest["snapshot-id"])]
    chosen = next((each for each in choices if each in known), None)
    if chosen is not None and (said[0] != chosen or said[1] != chosen):
        words["current-snapshot-id"] = chosen
        words.setdefault("refs", {}).setdefault(MAIN, {"type": "branch"})["snapshot-id"] = chosen
        yield f"let main and the current snapshot be {chosen}"


def _parents(words: Words, holdings: Holdings) -> Iterator[str]:
    for each in snapshots_in(words):
        read = holdings.lists.get(str(each.get("manifest-list") or ""))
        on = read.header.get("parent-snapshot-id") if isinstance(read, RawList) else None
        if on is None or str(each.get("parent-snapshot-id")).replace("None", "null") == on:
            continue
        if on == "null":
            each.pop("parent-snapshot-id", None)
        elif each.get("parent-snapshot-id") is not None or int(on) in holdings.parents:
            each["parent-snapshot-id"] = int(on)
        else:
            continue
        yield f"let the parent of snapshot {each['snapshot-id']} be {on}, on which its manifest list was written"


def _snapshot_numbers(words: Words, holdings: Holdings) -> Iterator[str]:
    for each in snapshots_in(words):
        read = holdings.lists.get(str(each.get("manifest-list") or ""))
        said = read.header.get("sequence-number", "") if isinstance(read, RawList) else ""
        if said.isdecimal() and each.get("sequence-number") is not None and int(said) != int(each["sequence-number"]):
            each["sequence-number"] = int(said)
            yield f"let snapshot {each['snapshot-id']} have sequence number {said}, as its manifest list says"


def _log(words: Words, _holdings: Holdings) -> Iterator[str]:
    known, current = parents_in(words), current_id(words)
    log = [each for each in words.get("snapshot-log") or [] if int(each["snapshot-id"]) in known]
    made = {int(each["snapshot-id"]): int(each["timestamp-ms"]) for each in snapshots_in(words)}
    log = _by_time(log)
    if log and current is not None and log[-1]["snapshot-id"] != current:
        at = max(int(words["last-updated-ms"]), int(log[-1]["timestamp-ms"]), made.get(current, 0))
        log.append({"snapshot-id": current, "timestamp-ms": at})
    if log != (words.get("snapshot-log") or []):
        words["snapshot-log"] = log
        yield "write the log of snapshots anew: in order, with those that are there, the current one last"


def _by_time(log: list[Words]) -> list[Words]:
    """Times that run backwards are set to those of what comes next."""
    fixed, limit = [], None
    for each in reversed(log):
        at = int(each["timestamp-ms"])
        limit = at if limit is None else min(limit, at)
        fixed.append({**each, "timestamp-ms": limit})
    return fixed[::-1]


def _metadata_log(words: Words, holdings: Holdings) -> Iterator[str]:
    log = list({str(each["metadata-file"]): each for each in words.get("metadata-log") or []}.values())
    there = sizes_of(holdings.io, [str(each["metadata-file"]) for each in log])
    kept = _by_time([each for each, size in zip(log, there, strict=True) if size is not None])
    if kept != (words.get("metadata-log") or []):
        words["metadata-log"] = kept
        yield "write the log of metadata files anew: in order, each once, those that are there"


def _times(words: Words, _holdings: Holdings) -> Iterator[str]:
    by_id = {int(each["snapshot-id"]): each for each in snapshots_in(words)}
    for each in sorted(by_id.values(), key=lambda one: int(one.get("sequence-number") or 0)):
        parent = by_id.get(each.get("parent-snapshot-id") or -1)
        if parent is not None and each["timestamp-ms"] < parent["timestamp-ms"]:
            each["timestamp-ms"] = parent["timestamp-ms"]
            yield f"date snapshot {each['snapshot-id']} as its parent, which it cannot be older than"
    latest = max((int(each["timestamp-ms"]) for each in by_id.values()), default=0)
    if int(words["last-updated-ms"]) < latest:
        words["last-updated-ms"] = latest
        yield "date the metadata as its newest snapshot"


def _defaults(words: Words, _holdings: Holdings) -> Iterator[str]:
    """A default that names nothing: the schema of the head, the newest spec, no sort order."""
    schemas = [int(each["schema-id"]) for each in words.get("schemas") or []]
    head = next((e for e in snapshots_in(words) if int(e["snapshot-id"]) in heads_in(words)[:1]), {})
    if schemas and words.get("current-schema-id") not in schemas:
        said = head.get("schema-id")
        words["current-schema-id"] = said if said in schemas else max(schemas)
        yield f"let schema {words['current-schema-id']} be the current one"
    for key, ids, what in (
        ("default-spec-id", [int(each["spec-id"]) for each in words.get("partition-specs") or []], "partition spec"),
        ("default-sort-order-id", [int(each["order-id"]) for each in words.get("sort-orders") or []], "sort order"),
    ):
        if ids and words.get(key) not in ids:
            words[key] = max(ids) if what == "partition spec" else min(ids)
            yield f"let {what} {words[key]} be the default"
    for each in snapshots_in(words):
        if schemas and each.get("schema-id") not in (None, *schemas):
            each.pop("schema-id")
            yield f"let snapshot {each['snapshot-id']} name no schema, because that one is not there"


def _counters(words: Words, _holdings: Holdings) -> Iterator[str]:
    snapshots = snapshots_in(words)
    fields = [number for schema in words.get("schemas") or [] for number in field_ids_of(schema)]
    parts = [int(f.get("field-id", 0)) for spec in words.get("partition-specs") or [] for f in spec["fields"]]
    ends = [
        int(each["first-row-id"]) + int(each.get("added-rows") or 0) for each in snapshots if "first-row-id" in each
    ]
    for key, used in (
        ("last-sequence-number", [int(each.get("sequence-number") or 0) for each in snapshots]),
        ("last-column-id", fields),
        ("last-partition-id", parts),
        ("next-row-id", ends),
    ):
        if key in words and used and int(words[key] or 0) < max(used):
            words[key] = max(used)
            yield f"raise {key} to {words[key]}, which is in use"


def _statistics(words: Words, holdings: Holdings) -> Iterator[str]:
    known = parents_in(words)
    for key in ("statistics", "partition-statistics"):
        there = words.get(key) or []
        sizes = sizes_of(holdings.io, [str(each["statistics-path"]) for each in there])
        kept = [e for e, size in zip(there, sizes, strict=True) if size is not None and int(e["snapshot-id"]) in known]
        if len(kept) < len(there):
            words[key] = kept
            yield f"forget {len(there) - len(kept)} {key} of what is not there"


def _keys(words: Words, _holdings: Holdings) -> Iterator[str]:
    for schema in words.get("schemas") or []:
        known, said = set(field_ids_of(schema)), schema.get("identifier-field-ids") or []
        if not set(said) <= known:
            schema["identifier-field-ids"] = [each for each in said if each in known]
            yield f"let schema {schema.get('schema-id', 0)} name no key column that it does not have"


MENDERS: dict[str, Mender] = {
    "ref_to_nowhere": _refs,
    "current_snapshot": _current,
    "wrong_parent": _parents,
    "parent_cycle": _parents,
    "sequence_numbers": _snapshot_numbers,
    "last_sequence_number": _counters,
    "last_column_id": _counters,
    "last_partition_id": _counters,
    "next_row_id": _counters,
    "timestamps": _times,
    "snapshot_log": _log,
    "metadata_log": _metadata_log,
    "schema_ids": _defaults,
    "partition_spec_ids": _defaults,
    "sort_order_ids": _defaults,
    "statistics": _statistics,
    "field_ids": _keys,
}
"""What sets a kind of finding right in the metadata file."""


def mend_words(words: Words, holdings: Holdings, findings: tuple[Finding, ...]) -> Iterator[tuple[str, str]]:
    """The kinds that were set right, each with what was done."""
    kinds = {each.kind for each in findings}
    done: set[Mender] = set()
    for kind, mender in MENDERS.items():
        if kind in kinds and mender not in done:
            done.add(mender)
            yield from ((kind, text) for text in mender(words, holdings))
