"""A realistic shop: many columns, two tables, five jobs. Its verdict, proposals and page come within one time limit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest

from lakeproof.commit import POLICIES
from lakeproof.jobs.answers import Listener, answer_jobs, first_beginning
from lakeproof.jobs.preparing import first_tables, prepare_jobs
from lakeproof.jobs.reading import Jobs, read_jobs
from lakeproof.jobs.searching import Clock, Limits
from lakeproof.jobs.text import taken_apart

SHOP = Path(__file__).resolve().parents[2] / "examples" / "shop_with_staging.sql"


def shop() -> Jobs:
    return read_jobs(taken_apart(SHOP.read_text(), name="shop.sql"))


def test_its_tables_are_made_ready_in_seconds() -> None:
    """Every row of an INSERT from an unknown source was once laid beside every row of the table: minutes of work."""
    started = time.process_time()
    ready = prepare_jobs(shop())
    assert time.process_time() - started < 10
    rows = {name: sum(len(members) for members in each.members) for name, each in ready.classes.items()}
    assert min(rows.values()) > 1000
    [stream] = [runs for runs in ready.runs if runs and "kafka" in runs[0].of.made.text]
    assert len({run.effect(()).added for run in stream}) == len(stream) > 100


def test_tables_of_one_row_come_from_both_tables_in_turn() -> None:
    empty, *ones = islice(first_tables(prepare_jobs(shop())), 3)
    assert empty == ()
    assert {name for [(name, _)] in ones} == {"shop.orders", "shop.staging"}


def test_it_can_be_walked_by_hand() -> None:
    """All first tables were once made before the first was shown, of which this file has millions."""
    beginning = first_beginning(shop(), POLICIES["iceberg-spark"])
    assert [len(rows) for _, rows in beginning.first] == [2]


@pytest.mark.slow
def test_the_counterexample_comes_first_and_the_proposals_within_the_limit() -> None:
    heard: list[str] = []
    listener = Listener(verdict=lambda one: heard.append(one.verdict), proposal=lambda one: heard.append(str(one)))
    clock = Clock(20, time.process_time)
    found = answer_jobs(shop(), POLICIES["iceberg-spark"], limits=Limits(clock), listener=listener)
    assert heard[0] == "violated"
    assert clock.spent < 35
    assert any("'write.delete.isolation-level' = 'serializable' of shop.orders" in one for one in heard)
    assert {"jobs": ["discount", "privacy"], "checks": ["no_new_delete_files"], "outcome": "abort"} in found.more[
        "pairs"
    ]
    trace = next(one.trace for one in found.properties if one.trace is not None)
    assert {step.actor for step in trace.steps} == {"discount", "privacy"}


@pytest.mark.slow
def test_from_an_empty_folder_to_its_page(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "lakeproof.cli.main", "check", str(SHOP), "--policy", "iceberg-spark"]
    done = subprocess.run(
        [*words, "--report", "page.html", "--max-seconds", "30"],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "What to change" in done.stdout
    page = (tmp_path / "page.html").read_text()
    assert page.index("What to change") < page.index("What happened")
    assert "shop.orders" in page


def test_a_wide_source_of_which_nothing_is_known_is_looked_at_in_part_and_said() -> None:
    """A product of all its columns' values was once gone through to the end, which no limit stopped."""
    columns = [f"c{i} int" for i in range(14)]
    asked = " and ".join(f"s.c{i} > {i}" for i in range(14))
    text = f"create table t (id int, {', '.join(columns)}) using iceberg;\n-- job: wide\n"
    text += f"merge into t using s on t.id = s.id when matched and {asked} then update set *;\n"
    started = time.process_time()
    ready = prepare_jobs(read_jobs(taken_apart(text, name="wide.sql")))
    assert time.process_time() - started < 20
    assert any("of the source rows" in one for one in ready.cut)
