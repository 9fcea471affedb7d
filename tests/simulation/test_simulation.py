"""The real commit in a simulated world: hundreds of schedules hold, and every wrong variant is found.

`LAKEPROOF_SCHEDULES` says how many schedules are run (500 by default). A seed that fails is printed with its run;
`python tools/simulate.py SEED` runs it again.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from itertools import islice

import pytest
from schedules import Found, in_version_three, moving, run, scheduled
from wrong_variants import OF_MOVES, OF_VERSION_THREE, VARIANTS, Variant, patched

from lakeproof.errors import CommitUnknown, InvalidInput, Unavailable

pytestmark = pytest.mark.slow
SCHEDULES = int(os.environ.get("LAKEPROOF_SCHEDULES", "500"))
PARTS = 4
LONGEST_SEARCH = 400


@pytest.mark.parametrize("part", range(PARTS))
def test_no_schedule_breaks_a_table(part: int) -> None:
    for seed in range(part, SCHEDULES, PARTS):
        found = run(scheduled(seed))
        assert not found.faults, found.told()


@pytest.mark.parametrize("part", range(2))
def test_no_schedule_breaks_a_table_of_version_three(part: int) -> None:
    for seed in range(part, SCHEDULES // 8, 2):
        found = run(in_version_three(scheduled(seed)))
        assert not found.faults, found.told()


@pytest.mark.parametrize("part", range(2))
def test_no_schedule_breaks_a_table_whose_rows_are_followed_by_ids(part: int) -> None:
    for seed in range(part, SCHEDULES // 25, 2):
        found = run(moving(seed))
        assert not found.faults, found.told()


def test_rows_that_are_followed_to_a_wrong_place_are_found() -> None:
    with patched(OF_MOVES):
        assert any(run(moving(seed)).faults for seed in range(LONGEST_SEARCH)), OF_MOVES.says


@pytest.mark.parametrize("variant", OF_VERSION_THREE, ids=lambda variant: variant.name)
def test_a_wrong_variant_of_version_three_is_found(variant: Variant) -> None:
    with patched(variant):
        of_theme = (seed for seed in range(10**6) if scheduled(seed).theme == variant.theme)
        found = (run(in_version_three(scheduled(seed))).faults for seed in islice(of_theme, LONGEST_SEARCH))
        assert any(found), variant.says


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_wrong_variant_is_found(variant: Variant) -> None:
    with patched(variant):
        of_theme = (seed for seed in range(10**6) if scheduled(seed).theme == variant.theme)
        assert any(run(scheduled(seed)).faults for seed in islice(of_theme, LONGEST_SEARCH)), variant.says


def test_there_are_twelve_wrong_variants_and_each_is_another() -> None:
    assert len({variant.says for variant in VARIANTS}) == len(VARIANTS) == 12


def without_run_number(found: Found) -> list[str]:
    return [re.sub(r"mem://\d+-\d+", "mem:", line) for line in found.log]


@pytest.mark.parametrize("seed", [2, 11, 17, 43])
def test_a_seed_is_one_run(seed: int) -> None:
    first, second = (without_run_number(run(scheduled(seed))) for _ in range(2))
    assert first == second


def test_every_fault_and_every_end_happens() -> None:
    """A world in which nothing goes wrong proves nothing."""
    faults: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    stormy = (each for each in map(scheduled, range(10**6)) if each.weather.storage or each.weather.swap > 0.4)
    for schedule in islice(stormy, 100):
        found = run(schedule)
        faults.update(each for outcome in found.outcomes for each in outcome.faults)
        faults.update(line.split(" of ")[0] for line in found.log if line.startswith("a late request"))
        ends.update("dead" if each.crashed else type(each.error).__name__ for each in found.outcomes)
    swaps = {f"swap: {fault}" for fault in ("late", "lost", "fail", "busy", "crash late", "crash after")}
    assert swaps | {"read: fail", "get: fail", "put: fail", "a late request"} <= set(faults), faults
    assert {"lost", "crash"} <= {fault.split(": ")[-1] for fault in faults if not fault.startswith("swap")}, faults
    told = {error.__name__ for error in (CommitUnknown, InvalidInput, Unavailable)}
    assert {"NoneType", "dead"} | told <= set(ends), ends
