"""Runs of the shipped Iceberg model: parameters as Python words, verdicts, and caches that forget a broken rule."""

from __future__ import annotations

import sys
from typing import Any

from lakeproof.checker.search import check
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.commit.policy import POLICIES
from lakeproof.models.iceberg import build

LAKEPROOF = POLICIES["lakeproof"]
READS = {"consistent_read", "isolation_kept"}
"""What a wrong commit rule violates; the other properties are about structure and progress."""


def words(parameters: dict[str, Any]) -> dict[str, str]:
    """`max_write_ops=2, fused=True` as the parameters are written on the command line."""
    return {
        name.replace("_", "-"): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in parameters.items()
    }


def searched(policy: Any = LAKEPROOF, *, first: Any = False, reductions: Any = True, **parameters: Any) -> Verdict:
    """The verdict of the configuration, the whole space explored unless `first`."""
    chosen = POLICIES[policy] if isinstance(policy, str) else policy
    return check(build(words(parameters), chosen), first=first, reductions=reductions)


def violated(verdict: Verdict) -> set[str]:
    """The properties that count and do not hold."""
    return {p.name for p in verdict.properties if p.counts and p.kind != "reachable" and p.verdict == "violated"}


def holds(verdict: Verdict) -> bool:
    """Whether every property that counts holds, of the whole space."""
    return verdict.exhausted and verdict.verdict == "holds" and not violated(verdict)


def forget_everything() -> None:
    """Empty every cache of the product: a cached answer of a rule that was right would hide that it is broken now."""
    for name, module in list(sys.modules.items()):
        if name.startswith("lakeproof."):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
