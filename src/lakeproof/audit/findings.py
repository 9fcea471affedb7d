"""One finding: what is wrong, where, why, how bad it is, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lakeproof.audit.kinds import KINDS, MAY, ROWS
from lakeproof.errors import hide_secrets

MOST_NAMED = 20
"""Files that one finding names."""
COLUMNS = ("kind", "snapshots", "because", "files", "check", "severity", "advice", "note")


class Finding(NamedTuple):
    """Something wrong: snapshots (oldest first) and files that show it, the reason, how bad it is, what to do."""

    kind: str
    snapshots: tuple[int, ...]
    because: str
    files: tuple[str, ...] = ()
    check: str = ""
    severity: str = ""
    advice: str = ""
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """The finding as `lakeproof audit --json` prints it."""
        shown = self.told()
        return {**shown._asdict(), "snapshots": list(shown.snapshots), "files": list(shown.files)}

    def told(self) -> Finding:
        """The finding as it may be printed: a warehouse's address may hold a key."""
        because, advice, note = map(hide_secrets, (self.because, self.advice, self.note))
        return self._replace(because=because, advice=advice, note=note, files=tuple(map(hide_secrets, self.files)))


def find(
    kind: str,
    because: str,
    *,
    snapshots: Sequence[int] = (),
    files: Sequence[str] = (),
    severity: str = "",
    advice: str = "",
) -> Finding:
    """A finding of a kind; what is not given is as `KINDS` says of it."""
    said = KINDS[kind]
    return Finding(
        kind,
        tuple(snapshots),
        because,
        tuple(files)[:MOST_NAMED],
        severity=severity or said.severity,
        advice=advice or said.advice,
    )


def as_read(finding: Finding, heads: Sequence[int]) -> Finding:
    """The finding, where what only older snapshots show makes no row wrong that a branch or tag reads."""
    if finding.severity == ROWS and finding.snapshots and not set(finding.snapshots) & set(heads):
        return finding._replace(severity=MAY)
    return finding
