"""A world as a report shows it: catalog, snapshots, manifests, files, rows, and what each writer has in hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakeproof.commit.checks import CHANGE_CHECKS, SNAPSHOT_CHECKS, describe_check
from lakeproof.commit.explain import because
from lakeproof.commit.validation import CommitWith, Refuse, RunAgain, validate
from lakeproof.format import DeleteContent, Row, Rows, TableState, Value, deleted_rows, inherited, positions, visible
from lakeproof.models.iceberg.world import (
    COMMIT,
    COMPACTION,
    LOST,
    METADATA,
    Conflicted,
    Logged,
    Op,
    Own,
    Ready,
    Setup,
    Shared,
    Writer,
)


def describe(
    setup: Setup, writers: Mapping[str, Writer], names: tuple[str, ...], shared: Shared, owns: tuple[Own, ...]
) -> dict[str, Any]:
    """The whole world as plain data."""
    table = shared.table
    return {
        "table": {
            "catalog": f"metadata-{table.sequence_number}",
            "columns": shown_columns(setup),
            "snapshots": _snapshots(setup, shared) if setup.told else [],
            "files": _files(setup, table, shared.log),
            "rows": [shown(setup, row) for row in visible(table, setup.shape.columns)],
        },
        "writers": [_writer(setup, writers, name, own, shared.log) for name, own in zip(names, owns, strict=True)],
        "violated": list(shared.violated),
    }


def shown_columns(setup: Setup) -> list[str]:
    """The columns that a report shows: not the hidden ones, and of several tables only that there are several."""
    return ["table"] if setup.several else [name for name in setup.shape.columns if not name.startswith("?")]


def shown(setup: Setup, row: Row) -> list[Value]:
    """A row as a report shows it: without hidden values, and without the columns of other tables."""
    names = setup.shape.columns
    if not setup.several:
        return [value for name, value in zip(names, row, strict=True) if not name.startswith("?")]
    mine = [name.startswith(f"{row[0]!s}.") and ".?" not in name for name in names]
    return [row[0], *(value for its, value in zip(mine, row, strict=True) if its)]


def _snapshots(setup: Setup, shared: Shared) -> list[dict[str, Any]]:
    found = []
    counter = 0
    log = shared.log
    if setup.table.snapshot_id is not None:
        counter, first = _manifests(None, setup.table, counter)
        rows = [shown(setup, row) for row in visible(setup.table, setup.shape.columns)]
        head = {"id": 1, "sequence_number": 1, "operation": "append", "parent": None, "committed_by": "the set-up"}
        names = {"command": "", "metadata": "metadata-1", "manifest_list": "manifest-list-1"}
        found.append({**head, **names, "manifests": first, "rows": rows, "expected": rows})
    for logged in log:
        snapshot = logged.snapshot
        counter, manifests = _manifests(logged, logged.table, counter)
        number = logged.table.sequence_number
        found.append(
            {
                "id": snapshot.snapshot_id,
                "sequence_number": number,
                "operation": str(snapshot.operation),
                "parent": snapshot.parent_id,
                "committed_by": logged.committed_by,
                "command": logged.command,
                "metadata": f"metadata-{number}",
                "manifest_list": f"manifest-list-{number}",
                "manifests": manifests,
                "rows": [shown(setup, row) for row in logged.rows],
                "expected": [shown(setup, row) for row in logged.expected],
            }
        )
    return found


def _manifests(logged: Logged | None, table: TableState, counter: int) -> tuple[int, list[dict[str, Any]]]:
    """One data and one delete manifest after each commit, as the seed merges them."""
    added = {f.path for f in logged.snapshot.added_data_files} if logged else {f.path for f in table.data_files}
    entries = [_entry("added" if f.path in added else "existing", f.path, f.sequence_number) for f in table.data_files]
    if logged:
        entries += [_entry("deleted", f.path, f.sequence_number) for f in logged.snapshot.removed_data_files]
    counter += 1
    found = [{"name": f"manifest-{counter}", "content": "data", "entries": entries}]
    new = {f.path for f in logged.snapshot.added_delete_files} if logged else set()
    deletes = [_entry("added" if f.path in new else "existing", f.path, f.sequence_number) for f in table.delete_files]
    if logged:
        deletes += [_entry("deleted", f.path, f.sequence_number) for f in logged.snapshot.removed_delete_files]
    if deletes:
        counter += 1
        found.append({"name": f"manifest-{counter}", "content": "deletes", "entries": deletes})
    return counter, found


def _entry(status: str, file: str, sequence_number: int) -> dict[str, Any]:
    return {"status": status, "file": file, "sequence_number": sequence_number}


def _files(setup: Setup, table: TableState, log: tuple[Logged, ...]) -> dict[str, Any]:
    columns = setup.shape.columns
    found: dict[str, Any] = {}
    for state in (setup.table, *(logged.table for logged in log), table) if setup.told else (table,):
        for file in state.data_files:
            dead = deleted_rows(file, state.delete_files, columns)
            rows = [shown(setup, row) for row in file.rows or ()]
            found[file.path] = {"kind": "data", "rows": rows, "deleted": list(positions(dead))}
            if file.first_row_id is not None:
                found[file.path]["row_ids"] = [number for number, _ in inherited(file)]
        for delete in state.delete_files:
            if delete.content is DeleteContent.EQUALITY:
                values = [list(value) for value in delete.equality_values or ()]
                found[delete.path] = {"kind": "equality deletes", "deletes": values}
            else:
                kind = "deletion vector" if delete.content is DeleteContent.VECTOR else "position deletes"
                pairs = [[file, p] for file, bits in delete.positions or () for p in positions(bits)]
                found[delete.path] = {"kind": kind, "deletes": pairs}
    return found


def _writer(
    setup: Setup, writers: Mapping[str, Writer], name: str, own: Own, log: tuple[Logged, ...]
) -> dict[str, Any]:
    if isinstance(own, Ready):
        return {"name": name, "phase": "READY"}
    command = "compaction" if own.command == COMPACTION else str(setup.commands[own.command])
    if isinstance(own, Conflicted):
        return {
            "name": name,
            "phase": "WRITE_METADATA_FILES",
            "command": command,
            "validation": f"refused by {own.check}",
        }
    change = own.change
    targets = own.window.rows.targets if own.window.rows is not None else ()
    deletes = _placed(targets) if not change.rewrites else []
    deletes = deletes or [text for file in change.added_delete_files for text in _placed(file.positions or ())]
    return {
        "name": name,
        "phase": own.phase,
        "command": command,
        "scan_snapshot": change.scan_snapshot,
        "adds": [
            "; ".join(" ".join(map(str, shown(setup, row))) for row in file.rows or ())
            for file in change.added_data_files
        ],
        "deletes": deletes,
        "removes": [file.path for file in change.removed_data_files],
        "validation": _validation(writers[own.policy], own),
        **_checks(writers[own.policy], own, log),
    }


def _checks(writer: Writer, op: Op, log: tuple[Logged, ...]) -> dict[str, Any]:
    """Each check that was asked and passed, and those that were not asked and would have said no."""
    if op.phase != COMMIT or not writer.setup.told:
        return {}
    asked = [name for name in writer.checks(op.change).names if name not in CHANGE_CHECKS]
    found: list[dict[str, str]] = [
        {"check": name, "answer": "passed", "because": describe_check(name)} for name in asked
    ]
    unseen = [one.snapshot for one in log if one.snapshot.snapshot_id > (op.change.scan_snapshot or 0)]
    for name, (question, _) in SNAPSHOT_CHECKS.items():
        no = next(filter(None, (question(op.change, snapshot, writer.setup.shape) for snapshot in unseen)), None)
        if name not in asked and no is not None and asked and not writer.checks(op.change).rows:
            found.append({"check": name, "answer": "not asked", "because": because(no, str(op.change.command))})
    return {"checks": found}


def _placed(rows: Rows) -> list[str]:
    return [f"{file} position {p}" for file, bits in rows for p in positions(bits)]


def _validation(writer: Writer, op: Op) -> str:
    checks = writer.checks(op.change)
    asked = ", ".join(checks.names) or "nothing to ask"
    if op.phase == COMMIT:
        return f"passed: {asked}"
    if op.phase not in (METADATA, LOST):
        return ""
    answer = validate(op.change, op.window, writer.policy, checks, reruns_left=writer.setup.reruns)
    if isinstance(answer, Refuse | RunAgain):
        return f"{answer.conflict.check}: {because(answer.conflict, str(op.change.command))}"
    if isinstance(answer, CommitWith) and answer.carried:
        return f"will ask {asked}; deletes to carry over: {', '.join(_placed(answer.carried))}"
    return f"will ask {asked}"
