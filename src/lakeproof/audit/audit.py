"""The audit of one table: its metadata, its snapshots and manifests, its recorded commits before a policy, its files.

What is damaged is said first. While anything is, nobody is told which files nothing names: they may be what is left of
the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from lakeproof.audit.commits import judge_commits
from lakeproof.audit.deep import Depth, Mapper, judge_contents, one_by_one
from lakeproof.audit.files import judge_files
from lakeproof.audit.findings import COLUMNS, MOST_NAMED, Finding, as_read, find
from lakeproof.audit.holdings import Holdings
from lakeproof.audit.kinds import FILES, HISTORY, NOTHING
from lakeproof.audit.manifests import judge_manifests
from lakeproof.audit.metadata import judge_metadata, snapshots_in
from lakeproof.audit.named_files import judge_named_files
from lakeproof.audit.recorded import PARENT, read_commits, snapshots_of
from lakeproof.audit.row_ids import judge_row_ids
from lakeproof.audit.snapshots import judge_snapshots
from lakeproof.commit import Policy
from lakeproof.errors import LakeproofError, Unavailable
from lakeproof.iceberg.committing.values import shape_of
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.inspecting.forgetting import forget_everything
from lakeproof.iceberg.inspecting.opening import RawTable, open_loaded
from lakeproof.iceberg.inspecting.raw_files import Damaged, damage_said
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.manifest_cache import ManifestCache
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files

SHALLOW = Depth()


class CommitSeen(NamedTuple):
    """One commit as it was judged, for the page: who, when, what, and what was found of it."""

    snapshot: int
    parent: int | None
    timestamp_ms: int
    operation: str
    command: str
    by: str
    kinds: tuple[str, ...]


class Audit(NamedTuple):
    """What was found; `assumed` counts commits of which only the kindest assumption could be judged.

    `notes`: what was not looked at, and why.
    """

    table: str
    policy: str
    snapshots: int
    findings: tuple[Finding, ...]
    assumed: int
    commits: tuple[CommitSeen, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The audit as `lakeproof audit --json` prints it."""
        return {
            "table": self.table,
            "policy": self.policy,
            "snapshots": self.snapshots,
            "assumed": self.assumed,
            "findings": [finding.to_json() for finding in self.findings],
            "notes": list(self.notes),
        }

    def to_arrow(self) -> pa.Table:
        """The findings as a table that can be joined: one row per finding."""
        kinds = {"snapshots": pa.list_(pa.int64()), "files": pa.list_(pa.string())}
        schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
        return pa.Table.from_pylist([finding.to_json() for finding in self.findings], schema=schema)


def audit(
    table: Table,
    policy: Policy,
    *,
    name: str,
    orphans: bool = True,
    depth: Depth = SHALLOW,
    run: Mapper = one_by_one,
) -> Audit:
    """Look at every recorded commit and at the table as it lies; its metadata file is read again."""
    return audit_raw(open_loaded(table, name), policy, orphans=orphans, depth=depth, run=run)


def audit_raw(
    raw: RawTable, policy: Policy, *, orphans: bool = True, depth: Depth = SHALLOW, run: Mapper = one_by_one
) -> Audit:
    """The same of a table that is only opened. `run` says where files are looked into, here or on Spark."""
    forget_everything()
    if raw.words is None:
        text = f"the metadata file {raw.location} cannot be read: {raw.why}"
        return Audit(raw.name, policy.name, 0, (find("unreadable_metadata", text, files=[raw.location]),), 0)
    looking = _Looking(raw, policy)
    with translate_errors(f"table {raw.name}"):
        looking.look(depth, run, orphans=orphans)
    return looking.result()


class _Looking:
    """An audit at work: what was found so far, and what could not be looked at."""

    def __init__(self, raw: RawTable, policy: Policy) -> None:
        assert raw.words is not None
        self.raw, self.policy, self.words = raw, policy, raw.words
        self.found: list[Finding] = []
        self.notes: list[str] = []
        self.assumed = 0
        self.made_sense = True

    def look(self, depth: Depth, run: Mapper, *, orphans: bool) -> None:
        """Go from the metadata to the files."""
        self.found += judge_metadata(self.words)
        if self.raw.table is None and not self.found:
            self.found.append(find("unreadable_metadata", f"the metadata file makes no sense: {self.raw.why}"))
        if any(each.kind in ("unreadable_metadata", "snapshot_twice") for each in self.found):
            self.made_sense = False
            self.notes.append("nothing else was looked at: the metadata file makes no sense")
            return
        holdings = Holdings(self.raw, self.words)
        self._add(holdings, [*judge_snapshots(holdings), *judge_manifests(holdings)])
        damaged = self._is_damaged()
        history = self._history(damaged=damaged)
        self._add(holdings, [*judge_files(holdings), *judge_row_ids(holdings), *judge_named_files(holdings)])
        if depth.deep:
            self._add(holdings, judge_contents(holdings, depth, run))
        state = self.found
        self.found = [*(each for each in state if each.kind not in FILES), *history]
        self.found += [each for each in state if each.kind in FILES]
        if orphans:
            self._unreferenced()

    def _add(self, holdings: Holdings, found: Iterable[Finding]) -> None:
        self.found += [as_read(each, holdings.heads) for each in found]

    def _is_damaged(self) -> bool:
        """Whether anything is wrong that a reader, or who removes files, could stumble over."""
        return any(each.severity != NOTHING and each.kind not in HISTORY for each in self.found)

    def _history(self, *, damaged: bool) -> list[Finding]:
        if self.raw.table is None:
            self.notes.append("the recorded commits were not judged: the metadata file makes no sense")
            return []
        try:
            with damage_said():
                return list(self._judged(self.raw.table))
        except (Damaged, LakeproofError) as error:
            if isinstance(error, Unavailable):
                raise
            why = "the table is damaged" if damaged else str(error).splitlines()[0]
            self.notes.append(f"the recorded commits were not judged: {why}")
            return []

    def _judged(self, table: Table) -> Iterator[Finding]:
        if any(each.kind == "parent_cycle" for each in self.found):
            raise Damaged("the line of parents runs in a circle")
        cache = ManifestCache(None)
        history = read_commits(table, snapshots_of(table, cache), cache)
        self.assumed = sum(one.note == PARENT and one.place > 0 for one in history)
        yield from judge_commits(history, self.policy, shape_of(table))

    def _unreferenced(self) -> None:
        """Files that nothing names, where everything that may name them could be read."""
        if self.raw.table is None or self._is_damaged():
            self.notes.append("files that nothing names were not looked for: what is wrong comes first")
            return
        try:
            found = remove_orphan_files(self.raw.table, older_than_ms=2**62, dry_run=True).files
        except LakeproofError as error:
            self.notes.append(f"files that nothing names were not looked for: {error}".splitlines()[0])
            return
        if found:
            text = f"{len(found)} files in the table's folders are named by nothing: leftovers, or of a writer at work"
            self.found.append(find("unreferenced_file", text, files=found[:MOST_NAMED]))

    def result(self) -> Audit:
        """What was found."""
        count = len(snapshots_in(self.words)) if self.made_sense else 0
        commits = tuple(self._commits()) if self.made_sense else ()
        return Audit(
            self.raw.name, self.policy.name, count, tuple(self.found), self.assumed, commits, tuple(self.notes)
        )

    def _commits(self) -> Iterator[CommitSeen]:
        for each in snapshots_in(self.words):
            number, summary = int(each["snapshot-id"]), each.get("summary") or {}
            kinds = {one.kind: None for one in self.found if number in one.snapshots}
            yield CommitSeen(
                number,
                each.get("parent-snapshot-id"),
                int(each["timestamp-ms"]),
                str(summary.get("operation", "")),
                str(summary.get("lakeproof.command", "")),
                str(summary.get("engine-name", "lakeproof" if "lakeproof.command-id" in summary else "")),
                tuple(kinds),
            )
