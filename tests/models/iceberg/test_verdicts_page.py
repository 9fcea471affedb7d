"""The generated page of verdicts is what the model computes now."""

from __future__ import annotations

from pathlib import Path

import pytest
from iceberg_verdicts import pairs, presets_table

from lakeproof.commit.policy import POLICIES
from lakeproof.models.iceberg import PRESETS

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    path, text = presets_table()
    assert (ROOT / path).read_text(encoding="utf-8") == text, "make docs"
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(lines) == len(PRESETS) * len(POLICIES)


def test_every_pair_is_counted_once() -> None:
    listed = list(pairs())
    assert len(listed) == len({frozenset(pair) for pair in listed}) == 10 + 4 * 5 - 1
