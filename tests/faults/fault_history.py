"""What the processes of a run told, as records that the judge reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

NEVER = 2**63
LOST_TRACK = frozenset({"unknown", "killed", "raw"})
"""Ends after which nobody has said whether the command happened."""


class Record(NamedTuple):
    """One command: when it began and ended (by the machine's steady clock), and how."""

    n: int
    kind: str
    told: dict[str, Any]
    began: int
    ended: int
    how: str
    error: str = ""

    @property
    def may_have_happened(self) -> bool:
        return self.how == "ok" or self.how in LOST_TRACK

    @property
    def certain(self) -> bool:
        """Whether it was acknowledged with an effect of its own."""
        return self.how == "ok"

    @property
    def over(self) -> int:
        """From when on it has certainly no effect any more."""
        return NEVER if self.how in LOST_TRACK else self.ended

    @property
    def name(self) -> str:
        return f"{self.kind} {self.n} ({self.how})"


class Told(NamedTuple):
    """A whole run: its commands, what its readers found wrong, how often they read, and the clocks' jumps."""

    records: tuple[Record, ...]
    seen: tuple[tuple[str, str], ...]
    reads: int
    jumps: int


def read_told(lines: Iterable[dict[str, Any]]) -> Told:
    """The records of all lines; a command without an end was killed."""
    begun: dict[int, dict[str, Any]] = {}
    ends: dict[int, dict[str, Any]] = {}
    seen, reads, jumps = [], 0, 0
    for line in lines:
        match line["e"]:
            case "begin":
                begun[line["n"]] = line
            case "end":
                ends[line["n"]] = line
            case "fault":
                seen.append((line["kind"], line["what"]))
            case "read":
                reads += 1
            case "jump":
                jumps += 1
    records = tuple(_record(line, ends.get(n)) for n, line in begun.items())
    return Told(records, tuple(seen), reads, jumps)


def _record(begin: dict[str, Any], end: dict[str, Any] | None) -> Record:
    end = end or {"t": NEVER, "how": "killed"}
    return Record(begin["n"], begin["kind"], begin, begin["t"], end["t"], end["how"], end.get("error", ""))
