"""Why each check is there: the shortest counterexample when it alone is switched off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from lakeproof.checker.search import check as search
from lakeproof.checker.verdicts.trace import Trace
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.commit.change import Command
from lakeproof.commit.checks import OF_OTHERS
from lakeproof.commit.policy import POLICIES, Policy
from lakeproof.models.iceberg import configured, model_of
from lakeproof.models.iceberg.bounds import Configured
from lakeproof.models.iceberg.telling import told

_TWO = {"num-keys": "2", "initial": "one-file", "max-write-ops": "2", "predicates": "id", "measure-aborts": "false"}
_COW = {"update-mode": "copy-on-write", "delete-mode": "copy-on-write"}
_SER = {"isolation": "serializable"}
CONFIGURATIONS: tuple[dict[str, str], ...] = (
    {"preset": "undelete", "measure-aborts": "false"},
    _TWO,
    _TWO | _SER,
    _TWO | _SER | {"duplicates": "true"},
    _TWO | _COW,
    _TWO | _COW | _SER,
    _TWO | {"update-mode": "copy-on-write"},
    _TWO | {"delete-mode": "copy-on-write"},
    _TWO | {"delete-mode": "copy-on-write"} | _SER,
    _TWO | {"max-compactions": "1"},
    _TWO | {"max-compactions": "2"},
    _TWO | _COW | {"max-compactions": "1", "initial": "two-files"},
    _TWO | _SER | {"commands": "insert,update,delete-exists"},
    _TWO | _SER | {"commands": "insert,insert-select,delete"},
    _TWO | {"format-version": "3"},
    _TWO | {"format-version": "3", "row-ids": "after-upgrade"},
    _TWO | _SER | {"commands": "insert,merge,overwrite-partition", "partitioned": "true"},
    _TWO | {"max-write-ops": "3", "max-expiries": "1"},
)
"""Small spaces, tried in order until one has a counterexample."""


class Necessity(NamedTuple):
    """One check of one policy: what goes wrong without it, in the smallest space that shows it."""

    policy: str
    check: str
    parameters: dict[str, str]
    violated: str | None  # `None`: no counterexample in these spaces
    depth: int | None
    states: int
    trace: Trace | None

    def to_json(self) -> dict[str, Any]:
        """The line as `lakeproof necessity --json` prints it."""
        trace = self.trace.to_json() if self.trace is not None else []
        return {**self._asdict(), "trace": trace}


def necessities() -> Iterator[Necessity]:
    """Every check about other commits, of the fixed Spark policy and of ours; one that the fix covers, of today's."""
    for name in ("iceberg-spark-fixed", "lakeproof"):
        for check in _checks(POLICIES[name]):
            found = necessity(POLICIES[name], check)
            if found.violated is None and name == "iceberg-spark-fixed":
                found = necessity(POLICIES["iceberg-spark"], check)
            yield found


def _checks(policy: Policy) -> list[str]:
    modelled = [line for line in policy.lines if Command.REWRITE_DELETES not in line.commands]
    asked = {check for line in modelled for part in line[2:] for check in part}
    return [check for check in OF_OTHERS if check in asked]


def necessity(policy: Policy, check: str) -> Necessity:
    """The shortest counterexample without this check, in the first space that has one."""
    without, states = policy.without(check), 0
    for parameters in CONFIGURATIONS:
        config = configured(parameters, without)
        verdict = search(model_of(config))
        states += verdict.states
        if verdict.verdict == "violated" and search(model_of(configured(parameters, policy))).verdict == "holds":
            return _found(policy, check, parameters, config, verdict)
    return Necessity(policy.name, check, {}, None, None, states, None)


def _found(policy: Policy, check: str, parameters: dict[str, str], config: Configured, verdict: Verdict) -> Necessity:
    first = verdict.first_violation
    trace = first.trace if first is not None else None
    shown = told(model_of(config, told=True), trace) if trace is not None else None
    name, depth = (first.name, first.depth) if first is not None else (None, None)
    return Necessity(policy.name, check, parameters, name, depth, verdict.states, shown)
