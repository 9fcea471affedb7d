"""Random tables and statements mean on managed tables what they mean in plain Spark.

`LAKEPROOF_MEANING_STATEMENTS` says how many statements, `LAKEPROOF_MEANING_SEED` where the seeds begin.
"""

from __future__ import annotations

import os
from contextlib import nullcontext

import pytest
from oracle import Difference, Oracle, told
from random_episodes import random_episode
from shrinking import shrunk

from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Captured = pytest.CaptureFixture[str]
STATEMENTS = int(os.environ.get("LAKEPROOF_MEANING_STATEMENTS", "80"))
FIRST_SEED = int(os.environ.get("LAKEPROOF_MEANING_SEED", "1"))
SHOWN = 5


def test_every_statement_means_what_plain_spark_says(lake: Lake, capsys: Captured) -> None:
    oracle = Oracle(lake)
    found: list[Difference] = []
    seed = FIRST_SEED
    while oracle.tally.statements < STATEMENTS and len(found) < SHOWN:
        episode = random_episode(seed, version=3 if seed % 3 == 0 else 2)
        found += oracle.differences(episode, by_pyiceberg=seed % 10 == FIRST_SEED % 10)
        seed += 1
    with capsys.disabled() if STATEMENTS > 80 else nullcontext():
        print(f"\nseeds {FIRST_SEED} to {seed - 1}: {oracle.tally}")
        for refused in oracle.tally.refused:
            print(f"  refused: {refused[:300]}")
    shown = [told(shrunk(oracle, difference)) for difference in found[:SHOWN]]
    assert not shown, f"{len(shown)} differences\n" + "\n\n".join(shown)
    assert oracle.tally.failures_alike < oracle.tally.statements / 2, "most statements should mean something"
