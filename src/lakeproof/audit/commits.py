"""Each recorded commit, judged by a policy with the window that it had."""

from __future__ import annotations

from collections.abc import Iterator

from lakeproof.audit.findings import Finding, find
from lakeproof.audit.recorded import Recorded, positions_of
from lakeproof.commit import Command, Conflict, Isolation, Policy, Refuse, RunAgain, checks_of, followed_all, validate
from lakeproof.commit.explain import because
from lakeproof.format import Operation, Rows, Snapshot, TableShape


def judge_commits(history: list[Recorded], policy: Policy, shape: TableShape) -> Iterator[Finding]:
    """What the policy says of every commit, and what compactions did to the rows."""
    snapshots = tuple(one.snapshot for one in history)
    for one in history:
        yield from _refused(one, snapshots, policy, shape)
        blind = any(each.blind for each in history[: one.place])
        if one.snapshot.operation is Operation.REPLACE and not blind:
            yield from _rewritten(one, snapshots)


def _refused(one: Recorded, snapshots: tuple[Snapshot, ...], policy: Policy, shape: TableShape) -> Iterator[Finding]:
    window = snapshots[one.scan + 1 : one.place]
    if not window or one.change.command is Command.INSERT:
        return
    # what a serializable command read is recorded as text only, so no row that others added can be held against it
    change = one.change._replace(isolation=Isolation.SNAPSHOT)
    checks = checks_of(policy, change.command, change.mode, change.isolation, shape.format_version)
    answer = validate(change, followed_all(change, window, checks, shape), policy, checks)
    if isinstance(answer, Refuse | RunAgain):
        yield _finding(one, snapshots, answer.conflict, aborts=isinstance(answer, Refuse))


def _finding(one: Recorded, snapshots: tuple[Snapshot, ...], conflict: Conflict, *, aborts: bool) -> Finding:
    rival = _rival(one, snapshots)
    at = (*((rival.snapshot_id,) if rival else ()), one.snapshot.snapshot_id)
    reason = because(conflict, str(one.change.command))
    fate = "would have been refused" if aborts else "would have run again"
    kind, advice = "refused_commit", ""
    if rival is not None and not rival.adds_no_data:
        kind = "undelete" if one.snapshot.adds_no_data else "lost_update"
        advice = _advice(kind, rival)
    text = f"{one.change.command} in snapshot {one.snapshot.snapshot_id} {fate}: {reason}"
    files = tuple(file.path for file in rival.added_data_files) if rival else conflict.files
    found = find(kind, text, snapshots=at, files=files, advice=advice)
    return found._replace(check=conflict.check, note=one.note)


def _rival(one: Recorded, snapshots: tuple[Snapshot, ...]) -> Snapshot | None:
    """The unseen commit that took away a row, or a file, that this one takes away too."""
    mine = dict(one.change.targets)
    removed = {file.path for file in one.snapshot.removed_data_files}
    for other in snapshots[one.scan + 1 : one.place]:
        rows: Rows = positions_of(other)
        if any(mine.get(file, 0) & bits for file, bits in rows):
            return other
        if any(file.path in mine or file.path in removed for file in other.removed_data_files):
            return other
    return None


def _advice(kind: str, rival: Snapshot) -> str:
    names = ", ".join(file.path for file in rival.added_data_files[:3])
    if kind == "undelete":
        return f"run the DELETE again: the rows that it should have removed live on in {names}"
    return f"find the rows that are there twice or were overwritten; one version is in {names}"


def _rewritten(one: Recorded, snapshots: tuple[Snapshot, ...]) -> Iterator[Finding]:
    """A compaction writes the rows that are live when it commits: no more, no less."""
    earlier = snapshots[: one.place]
    if any(file.positions is None for snapshot in earlier for file in snapshot.added_delete_files):
        return  # equality deletes or unknown positions: nobody can count
    known = {file.path for snapshot in earlier for file in snapshot.added_data_files}
    inputs = one.snapshot.removed_data_files
    if not inputs and not one.snapshot.added_data_files:
        return  # it wrote manifests or delete files anew, and no rows
    if any(file.path not in known for file in inputs):
        return  # written before the recorded history
    dead: dict[str, int] = {}
    for snapshot in earlier:
        for file, rows in positions_of(snapshot):
            dead[file] = dead.get(file, 0) | rows
    live = sum(file.record_count - dead.get(file.path, 0).bit_count() for file in inputs)
    carried = sum(rows.bit_count() for _, rows in positions_of(one.snapshot))
    written = sum(file.record_count for file in one.snapshot.added_data_files) - carried
    if written != live:
        kind = "rows_resurrected_by_rewrite" if written > live else "rows_lost_by_rewrite"
        text = f"compaction {one.snapshot.snapshot_id} left {written} rows where {live} were live"
        advice = f"roll back to snapshot {one.snapshot.parent_id} and compact again"
        names = tuple(file.path for file in one.snapshot.added_data_files)
        found = find(kind, text, snapshots=(one.snapshot.snapshot_id,), files=names, advice=advice)
        yield found._replace(note=one.note)
