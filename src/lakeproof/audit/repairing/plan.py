"""The plan of a repair: what would set which finding right, what nobody can set right, and the commit that does it.

A repair removes nothing. What it replaces stays, and the table says so (`lakeproof.repair.kept`): it is no orphan.
Every retained snapshot is set right, not the head alone: what is wrong in a snapshot that somebody travels to is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from lakeproof.audit.audit import audit_raw
from lakeproof.audit.deep import Depth
from lakeproof.audit.findings import Finding
from lakeproof.audit.holdings import Held, Holdings
from lakeproof.audit.kinds import HISTORY, NOTHING
from lakeproof.audit.metadata import MAIN, current_id, judge_metadata, line_of
from lakeproof.audit.repairing.entries import mend_entries, mend_statuses, mend_twice
from lakeproof.audit.repairing.words import mend_words
from lakeproof.audit.snapshots import totals_of
from lakeproof.commit import Policy
from lakeproof.errors import InvalidInput, LakeproofError
from lakeproof.iceberg.inspecting.lost_files import find_copy
from lakeproof.iceberg.inspecting.opening import RawTable
from lakeproof.iceberg.inspecting.raw_files import Damaged, Gone
from lakeproof.iceberg.mending.commit import commit_draft
from lakeproof.iceberg.mending.dangling import drop_dangling
from lakeproof.iceberg.mending.drafts import Draft

LINES = (
    "manifest_counts",
    "manifest_length",
    "manifest_content",
    "manifest_spec",
    "manifest_twice",
    "partition_summary",
    "sequence_numbers",
    "partition_spec_ids",
)
"""Kinds that a list with true lines sets right."""
LOST = ("missing_file", "missing_manifest", "missing_manifest_list")


class RepairStep(NamedTuple):
    """One thing that the repair does, and the kind of finding that it sets right."""

    kind: str
    does: str


class RepairPlan(NamedTuple):
    """What would be done, on top of which metadata file; of all that is `found`, `left` needs a person.

    `roll_back`: the newest snapshot of main in which nothing is wrong, where the head cannot be mended.
    """

    table: str
    at: str
    steps: tuple[RepairStep, ...]
    left: tuple[Finding, ...]
    roll_back: int | None
    draft: Draft | None
    dangling: tuple[str, ...] = ()
    found: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The plan as `lakeproof repair --json` prints it."""
        return {
            "table": self.table,
            "at": self.at,
            "steps": [step._asdict() for step in self.steps],
            "left": [finding.to_json() for finding in self.left],
            "roll_back": self.roll_back,
        }


def make_plan(raw: RawTable, policy: Policy, *, depth: Depth, roll_back: bool = False) -> RepairPlan:
    """Audit the table, and say what would set its findings right; nothing is written."""
    found = [each for each in audit_raw(raw, policy, depth=depth, orphans=False).findings if each.kind not in HISTORY]
    if raw.words is None or any(each.kind in ("unreadable_metadata", "snapshot_twice") for each in found):
        return RepairPlan(raw.name, raw.location, (), tuple(found), None, None, (), tuple(found))
    planning = _Planning(raw, found, opened=depth.deep)
    planning.mend()
    left = planning.left()
    back = planning.good_snapshot(left)
    if roll_back:
        planning.roll_back(back)
        left = [each for each in left if current_id(planning.draft.words) in each.snapshots]
    steps, rest = tuple(planning.steps), tuple(left)
    return RepairPlan(raw.name, raw.location, steps, rest, back, planning.draft, planning.dangling, tuple(found))


def apply_plan(raw: RawTable, plan: RepairPlan) -> str:
    """Commit the plan; gives the metadata file that the catalog points to then. Refused if the table was changed."""
    if plan.draft is None or not plan.steps:
        raise InvalidInput("there is nothing that a repair could do", place=f"table {raw.name}")
    if raw.catalog is None:
        hint = "name the table as its catalog knows it"
        raise InvalidInput("a table that is opened by its files is not changed", place=raw.name, hint=hint)
    location = raw.location if plan.draft.is_empty else commit_draft(raw, plan.draft)
    return drop_dangling(raw, plan.dangling, current_id(plan.draft.words)) if plan.dangling else location


class _Planning:
    """A plan in the making."""

    def __init__(self, raw: RawTable, found: list[Finding], *, opened: bool) -> None:
        assert raw.words is not None
        self.raw, self.found, self.opened = raw, found, opened
        self.holdings = Holdings(raw, raw.words)
        self.draft = Draft(raw.io, raw.location, raw.words)
        self.steps: list[RepairStep] = []
        self.mended: list[Finding] = []
        self.kinds: set[str] = set()
        self.dangling: tuple[str, ...] = ()

    def mend(self) -> None:
        """Find out what can be set right, from the files to the metadata."""
        for finding, text in self._lost():
            self._done(finding, text)
        told = mend_entries(self.draft, self.holdings, self.found, opened=self.opened)
        twice, statuses = (m(self.draft, self.holdings, self.found) for m in (mend_twice, mend_statuses))
        for finding, text in (*told, *twice, *statuses):
            self._done(finding, text)
        for kind, text in mend_words(self.draft.words, self.holdings, tuple(self.found)):
            self.kinds.add(kind)
            self._step(kind, text)
        self._lists()
        self._totals()
        self._dangling()

    def _step(self, kind: str, text: str) -> None:
        step = RepairStep(kind, text)
        if step not in self.steps:
            self.steps.append(step)

    def _done(self, finding: Finding, text: str) -> None:
        self.mended.append(finding)
        self._step(finding.kind, text)

    def _lost(self) -> Iterator[tuple[Finding, str]]:
        folder = str(self.draft.words["location"])
        for each in self.found:
            if each.kind in LOST:
                copy = find_copy(self.raw.io, folder, each.files[0], self._size(each.files[0]))
                if copy is not None:
                    self.draft.copies.append((copy, each.files[0]))
                    yield each, f"copy {copy} back to {each.files[0]}"

    def _size(self, path: str) -> int | None:
        """The size that the table says of a file."""
        for held in self.holdings.held:
            for line in held.list.lines:
                if line.path == path:
                    return line.length
            for entries in held.entries:
                for name, size in zip(entries.text("path"), entries.size.tolist(), strict=True):
                    if name == path:
                        return int(size)
        return None

    def _lists(self) -> None:
        """Every list with a line that is not true, or that names a manifest which is written anew."""
        wrong = {number for each in self.found if each.kind in LINES for number in each.snapshots}
        for snapshot in self.draft.words["snapshots"]:
            held = self.holdings.by_id.get(int(snapshot["snapshot-id"]))
            if held is None or not (held.whole and held.list.lines):
                continue
            touched = any(line.path in self.draft.changed for line in held.list.lines)
            if (held.id in wrong or touched) and self._is_own(held):
                try:
                    changed = self.draft.relist(snapshot, keep=_once)
                except (Damaged, Gone, LakeproofError):
                    continue
                if changed and held.id in wrong:
                    mine = [e for e in self.found if e.kind in LINES and held.id in e.snapshots and e.files]
                    self.kinds |= {each.kind for each in mine}
                    kind = mine[0].kind if mine else "manifest_counts"
                    self._step(kind, f"write the manifest list of snapshot {held.id} anew, as its manifests are")

    def _is_own(self, held: Held) -> bool:
        return held.list.header.get("snapshot-id", str(held.id)) == str(held.id)

    def _totals(self) -> None:
        """Totals are counted again where they are wrong, or where entries were changed."""
        wrong = {number for each in self.found if each.kind == "summary_totals" for number in each.snapshots}
        broken = {number for each in self.found if each.kind in DAMAGES for number in each.snapshots}
        for snapshot in self.draft.words["snapshots"]:
            number = int(snapshot["snapshot-id"])
            held = self.holdings.by_id.get(number)
            if held is None or not held.whole or number in broken or number not in wrong | set(self.draft.lists):
                continue
            real, summary = self._counted(held), snapshot.get("summary") or {}
            changed = {key: str(value) for key, value in real.items() if key in summary and summary[key] != str(value)}
            self.kinds.add("summary_totals")
            if changed:
                summary.update(changed)
                self._step("summary_totals", f"let the summary of snapshot {number} say its true totals")

    def _counted(self, held: Held) -> dict[str, int]:
        """The totals of a snapshot, with the entries as they will be."""
        file = self.draft.lists.get(held.id)
        if file is None:
            return totals_of(held)
        totals = dict.fromkeys(totals_of(held), 0)
        for line in file.records:
            manifest = self.draft.manifest(line[file.name(500)])
            for record in manifest.records:
                if record[manifest.name(0)] != 2:
                    _count(totals, manifest.has(2, 134), record[manifest.name(2)], manifest)
        return totals

    def _dangling(self) -> None:
        """A delete file that names nothing leaves the head of main by a commit of its own."""
        head = current_id(self.draft.words)
        names = [each for each in self.found if each.kind == "dangling_delete_file" and head in each.snapshots]
        if names and all(each in self.mended or each.severity == NOTHING for each in self.found):
            self.dangling = tuple(each.files[0] for each in names)
            for each in names:
                self._done(each, f"take {each.files[0]}, which deletes nothing, out of the head")

    def left(self) -> list[Finding]:
        """What is not set right, as far as it can be told before it is done."""
        told = {each.kind for each in judge_metadata(self.raw.words or {})}
        still = {each.kind for each in judge_metadata(self.draft.words)}
        gone = self.kinds | (told - still) | (FOLLOWING if self.kinds & set(LINES) else set())
        gone -= told & still
        return [each for each in self.found if each not in self.mended and each.kind not in gone]

    def good_snapshot(self, left: list[Finding]) -> int | None:
        """The newest snapshot of main without a finding that is left, if the head has one."""
        words = self.draft.words
        bad = {number for each in left if each.severity != NOTHING for number in each.snapshots}
        head = current_id(words)
        if head not in bad:
            return None
        parents = {int(e["snapshot-id"]): e.get("parent-snapshot-id") for e in words["snapshots"]}
        return next((each for each in line_of(parents, head) if each not in bad), None)

    def roll_back(self, to: int | None) -> None:
        """Let main be the good snapshot."""
        if to is None:
            raise InvalidInput("there is no good snapshot to roll back to", place=f"table {self.raw.name}")
        words = self.draft.words
        words["current-snapshot-id"] = to
        words.setdefault("refs", {}).setdefault(MAIN, {"type": "branch"})["snapshot-id"] = to
        words.setdefault("snapshot-log", []).append({"snapshot-id": to, "timestamp-ms": int(words["last-updated-ms"])})
        self._step("roll_back", f"roll main back to snapshot {to}")


FOLLOWING = {"summary_totals", "dangling_delete_file", "idle_delete_file"}
"""Kinds that a wrong line brings with it, and that go with it."""
DAMAGES = ("entry_status", "unreadable_manifest_list", "manifest_list_of_another")
"""Kinds after which nobody knows the true totals."""


def _once(lines: list[dict[str, Any]], file: Any) -> list[dict[str, Any]]:
    """Each manifest once."""
    return list({line[file.name(500)]: line for line in lines}.values())


def _count(totals: dict[str, int], has_content: bool, told: dict[str, Any], manifest: Any) -> None:
    content = told[manifest.name(2, 134)] if has_content else 0
    rows = int(told[manifest.name(2, 103)])
    vector = told[manifest.name(2, 145)] if content and manifest.has(2, 145) else None
    totals["total-files-size"] += int(told[manifest.name(2, 104)] if vector is None else vector)
    for key, much in (
        (("total-data-files", 1), ("total-records", rows))
        if not content
        else (("total-delete-files", 1), ("total-equality-deletes" if content == 2 else "total-position-deletes", rows))
    ):
        totals[key] += much
