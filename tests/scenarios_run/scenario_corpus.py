"""The scenario files, parsed once, and what a run of them says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lakeproof.commit import POLICIES
from lakeproof.commit.policy import check_list, checks_of
from lakeproof.scenarios.against_checks import AgainstChecks
from lakeproof.scenarios.run import find_differences, policies_of
from lakeproof.scenarios.text import Scenario, parse_scenario

FOLDER = Path(__file__).parent.parent / "scenarios"
FILES = sorted(FOLDER.glob("*.txt"))
NAMES = [path.stem for path in FILES]


@cache
def scenario(name: str) -> Scenario:
    path = FOLDER / f"{name}.txt"
    return parse_scenario(path.read_text(encoding="utf-8"), name=f"{name}.txt")


def found(name: str) -> list[str]:
    """Where the runs under every policy that the scenario speaks of differ from its text."""
    one = scenario(name)
    return [str(each) for policy in policies_of(one) for each in find_differences(one, POLICIES[policy], AgainstChecks)]


def forget_checks() -> None:
    """Let the policies look up their checks anew."""
    check_list.cache_clear()
    checks_of.cache_clear()
