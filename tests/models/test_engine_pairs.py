"""Pairs of engines: the page says what the model does, and the pairs that go wrong are named."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from lakeproof.cli.main import main
from lakeproof.commit import Command, Isolation, Mode
from lakeproof.commit.planning import mode_for
from lakeproof.commit.policy import LAKEPROOF
from lakeproof.models.questions.matrix import PairCell, pair_cells, shortest_anomaly

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from engines_page import PAGE, engines, paths  # noqa: E402

ENGINES = engines()
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
CHECKED = [("trino", "trino"), ("kafka-connect", "flink"), ("iceberg-rust", "duckdb-iceberg"), ("flink", "trino")]


def counted(cells: list[PairCell]) -> str:
    """Safe, aborts and anomaly, as the page has them."""
    words = [cell.word for cell in cells]
    return " / ".join(str(words.count(word)) for word in ("safe", "aborts", "anomaly"))


@pytest.mark.parametrize(("first", "second"), CHECKED)
def test_the_page_has_the_counts(first: str, second: str) -> None:
    row = next(line for line in TEXT.splitlines() if line.startswith(f"| **{first}** |"))
    assert row.split(" | ")[1 + list(ENGINES).index(second)].removesuffix(" |") == counted(
        list(pair_cells(ENGINES[first], ENGINES[second]))
    )


def test_a_delete_of_trino_undoes_no_update_of_trino_but_leaves_its_row() -> None:
    """Since a DELETE no longer asks for new delete files, the new version of an updated row survives it."""
    trino = ENGINES["trino"]
    wrong = [pair for pair in pair_cells(trino, trino) if pair.cell.anomaly == "consistent_read"]
    assert {(pair.cell.first, pair.cell.second) for pair in wrong} == {
        ("UPDATE", "DELETE"),
        ("UPDATE", "DELETE EXISTS"),
        ("MERGE", "DELETE"),
        ("MERGE", "DELETE EXISTS"),
    }
    assert {(pair.cell.isolation, pair.cell.rows) for pair in wrong} == {(str(Isolation.SNAPSHOT), "same")}
    shortest = shortest_anomaly(wrong)
    assert shortest is not None
    assert len(shortest.steps) == 10
    assert shortest.steps[-1] == "writer-2, trino: swap"


def test_beside_ours_nobody_makes_our_rows_wrong() -> None:
    """Whatever the other engine does first, a `lakeproof` writer that validates after it is never an anomaly."""
    assert {pair.word for pair in pair_cells(ENGINES["duckdb-iceberg"], LAKEPROOF)} == {"safe"}


def test_an_engine_runs_only_what_it_has_in_the_way_it_has() -> None:
    assert ENGINES["iceberg-rust"].only == (Command.INSERT,)
    assert mode_for(Command.DELETE, ENGINES["trino"], Mode.COPY_ON_WRITE) is Mode.MERGE_ON_READ
    assert {pair.cell.first for pair in pair_cells(ENGINES["kafka-connect"], ENGINES["iceberg-rust"])} == {
        "INSERT",
        "UPSERT",
    }


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_each_line_of_a_policy_names_its_source(path: Path) -> None:
    """Above each line, or where the whole engine has one source at the head, stands where it is said."""
    head, *lines = path.read_text(encoding="utf-8").split("[[line]]\n")
    above = [head, *lines][: len(lines)]
    source = re.compile(r"#\d{3,}|\.java|finish\w+|Committer|Coordinator|RefSnapshotIdMatch")
    assert all(
        source.search(text.rpartition("\n\n")[0 if text is head and text.endswith("\n\n") else 2]) for text in above
    )


def test_the_pair_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = (str(ROOT / "examples" / "engines" / f"{name}.toml") for name in ("kafka-connect", "iceberg-rust"))
    assert main(["matrix", "--policy", one, "--policy-of-second", other, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(order["first"], order["second"]) for order in found["orders"]] == [
        ("kafka-connect", "iceberg-rust"),
        ("iceberg-rust", "kafka-connect"),
    ]
    assert all(cell["pair"] == "safe" and cell["steps"] for order in found["orders"] for cell in order["cells"])
    trino = str(ROOT / "examples" / "engines" / "trino.toml")
    assert main(["matrix", "--policy", trino, "--policy-of-second", trino]) == 1
    assert "UPDATE, then DELETE: merge-on-read, snapshot, same" in capsys.readouterr().out
