"""The commit of a change to a real table, as patiently as its properties say."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.table import Table

from lakeproof.commit import Attempt, Policy, RunAgain, TableChange, checks_of, drive
from lakeproof.commit.policy_text import named_policy
from lakeproof.iceberg.committing.commit import (
    Committed,
    Hook,
    TableCalls,
    no_hook,
)
from lakeproof.iceberg.committing.patience import Patience, Turn
from lakeproof.iceberg.committing.physical import (
    NO_FILES,
    NewFiles,
    Wanted,
)
from lakeproof.iceberg.committing.summary import record_of
from lakeproof.iceberg.committing.table_access import TableAccess
from lakeproof.iceberg.reading.manifest_cache import ManifestCache
from lakeproof.iceberg.tables.branches import ref_of

POLICY_PROPERTY = "lakeproof.policy"


def commit_change(
    table: Table,
    change: TableChange,
    files: NewFiles = NO_FILES,
    *,
    policy: Policy | None = None,
    reruns: int = 0,
    reruns_left: bool = False,
    summary: Mapping[str, str] | None = None,
    cache: ManifestCache | None = None,
    on_phase: Hook = no_hook,
) -> Committed | RunAgain:
    """The change as one snapshot on the table's branch, on top of whatever others committed since its scan snapshot.

    `RunAgain` is given back only if `reruns_left`; else a conflict is raised. Metadata of a commit that did not happen
    is removed, and so are delete files that turn out to be in vain; other files are the caller's (`remove_files`).
    """
    policy = policy or named_policy(table.properties.get(POLICY_PROPERTY, "lakeproof"))
    said = {**record_of(change, policy, reruns), **(summary or {}), **ref_of(table).summary}
    checks = checks_of(policy, change.command, change.mode, change.isolation, table.format_version)
    access = TableAccess(table, Wanted(change, files, policy, said), cache)
    turn = Turn(str(table.metadata.table_uuid))
    return go_through(TableCalls(access, policy, checks, on_phase, reruns_left=reruns_left), table.properties, turn)


def go_through(calls: TableCalls, properties: Mapping[str, str], turn: Turn | None = None) -> Committed | RunAgain:
    """Go through the protocol with these calls; after a lost swap they wait for their turn."""
    patience = Patience(properties, turn)
    try:
        return calls.outcome(drive(Attempt(max_retries=patience.max_retries), calls, may_wait=patience.wait))
    finally:
        if turn is not None:
            turn.end()
