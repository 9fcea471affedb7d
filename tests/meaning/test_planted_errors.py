"""The oracle finds each planted error.

`LAKEPROOF_MEANING_PLANTED` says how many of them are tried, evenly spread over the list.
"""

from __future__ import annotations

import os

import pytest
from oracle import Oracle
from planted_source import planted
from planting import Planted, planted_errors

from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
WANTED = int(os.environ.get("LAKEPROOF_MEANING_PLANTED", "3"))
PLANTED = planted_errors()
CHOSEN = PLANTED[:: max(1, len(PLANTED) // WANTED)][:WANTED]


def test_the_list_is_long_enough_and_every_name_is_there_once() -> None:
    assert len(PLANTED) >= 25
    assert len({error.name for error in PLANTED}) == len(PLANTED)


@pytest.mark.parametrize("error", CHOSEN, ids=lambda error: error.name)
def test_the_oracle_finds_a_planted_error(lake: Lake, error: Planted) -> None:
    oracle = Oracle(lake)
    with planted(error):
        found = oracle.differences(error.episode(), first=True)
    assert found, f"nobody saw that {error.name}: {oracle.tally}"
