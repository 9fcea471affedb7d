"""The pages about Paimon say what the checker says today."""

from __future__ import annotations

from pathlib import Path

import paimon_pages as table
import pytest
from paimon_pages import BLOCK, STORIES, TABLES, renewed

PAGES = Path(__file__).parents[3] / "docs" / "explanation"
NAMES = ("paimon.md", "paimon-dangling-vectors.md")


@pytest.mark.parametrize("name", NAMES)
def test_every_block_has_a_source_and_is_filled(name: str) -> None:
    blocks = list(BLOCK.finditer((PAGES / name).read_text(encoding="utf-8")))
    assert len(blocks) >= 5
    for block in blocks:
        assert block["name"] in TABLES or block["name"].removeprefix("story-") in STORIES
        assert block[0].count("\n") > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_what_the_checker_computes(name: str) -> None:
    page = (PAGES / name).read_text(encoding="utf-8")
    assert renewed(page) == page


def test_a_table_line_has_the_verdict_in_words() -> None:
    lines = table.table([table.Line("two compactors", "preset=two-compactors")]).splitlines()
    assert lines[2] == (
        "| two compactors | `preset=two-compactors` | 792 | `no_dangling_deletion_vectors` violated at depth 20; "
        "`one_valid_row_per_key` violated at depth 20 |"
    )


def test_a_story_ends_with_the_table() -> None:
    assert table.story("two-writers").splitlines() == [
        "`--set preset=two-writers-one-bucket`, depth 8:",
        "",
        "1. writer-1 decides: insert jack red A",
        "2. writer-1 commits snapshot 1: data-1 in level 0 (+I jack red A (sequence 0))",
        "3. writer-2 reads snapshot 1 and decides: delete jack",
        "4. writer-2 commits snapshot 2: data-2 in level 0 (-D jack (sequence 0))",
        "",
        "```",
        "Version: 2",
        "File ids: p-0_b-0_data-1, p-0_b-0_data-2",
        "Vectors: none",
        "Rows:",
        "  +I jack red A (sequence 0), data file: p-0_b-0_data-1, level: 0, pos: 0",
        "  -D jack (sequence 0), data file: p-0_b-0_data-2, level: 0, pos: 0",
        "Expected: jack: no row, sarah: no row",
        "```",
    ]
