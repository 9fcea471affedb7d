"""Real writers on a real catalog, disturbed and killed: the judge finds nothing, and each planted error.

`LAKEPROOF_FAULT_MINUTES` makes the runs longer and takes in PostgreSQL, the REST catalog and Spark (`make check-all`
and `make soak` say so); `python tools/faults.py` is the same by hand. The judge has tests of its own on histories.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from random import Random
from typing import Any

import pytest
from fault_commands import ACCOUNTS, NUMBERS_OF_ONE, Maker
from fault_history import NEVER, Record, Told
from fault_judge import Layout, Row, Table, judged
from fault_runs import LAYOUT, Figures, Plan, planted_plan, run
from planted_faults import PLANTED

MINUTES = float(os.environ.get("LAKEPROOF_FAULT_MINUTES", "0"))
SEED = int(os.environ.get("LAKEPROOF_FAULT_SEED", "20"))
SECONDS = MINUTES * 60 or 12
TRIES = 4
FEW = ("blind swap", "done and refused", "unchecked")
"""Planted errors of `make test`; the others are planted in `make check-all`."""


def faultless(figures: Figures) -> None:
    """No fault was found, and something happened."""
    print(figures.line())
    print(figures.weather())
    assert figures.faults == (), (figures.line(), figures.faults[:10])
    assert figures.count("ok") > 10
    assert figures.disturbed["kills"] > 0


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_on_sqlite() -> None:
    faultless(run(Plan("sqlite", SECONDS, SEED, least=60)))


@pytest.mark.peer
@pytest.mark.parametrize("catalog", ["sqlite", "postgres", "rest"])
def test_nothing_is_lost_or_doubled_with_spark_among_the_writers(catalog: str) -> None:
    faultless(run(Plan(catalog, SECONDS, SEED + 1, spark=True, least=60)))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in FEW else pytest.mark.peer) for name in PLANTED]
)
def test_a_planted_error_is_found(name: str) -> None:
    for seed in range(SEED, SEED + TRIES):
        if run(planted_plan(name, seed, 5 if name in FEW else 20)).faults:
            return
    pytest.fail(f"nobody saw that {PLANTED[name].says}")


# ---- the judge alone


def record(n: int, kind: str, how: str = "ok", began: int = 1, ended: int = 2, **told: Any) -> Record:
    return Record(n, kind, dict(told), began, NEVER if how == "killed" else ended, how)


ROWS: tuple[Row, ...] = tuple((account, 0, LAYOUT.start) for account in LAYOUT.accounts)


def found(records: list[Record], rows: tuple[Row, ...], layout: Layout = LAYOUT) -> list[str]:
    head = (*ROWS, *rows)
    table = Table(head, {1: head}, frozenset())
    return [fault.kind for fault in judged(Told(tuple(records), (), 0, 0), table, layout, tags_may_go=False)]


INSERT: dict[str, Any] = {"ids": [10, 11]}
MOVED: dict[str, Any] = {"from": 1, "to": 2, "amount": 5}
BOTH = ((10, 2, 1), (11, 2, 1))


@pytest.mark.parametrize(
    ("records", "rows", "kinds"),
    [
        pytest.param([record(1, "insert", **INSERT)], BOTH, [], id="all is well"),
        pytest.param([record(1, "insert", **INSERT)], BOTH[:1], ["loss"], id="a row is lost"),
        pytest.param([record(1, "insert", "nothing", **INSERT)], (), ["loss"], id="done, and there is nothing"),
        pytest.param([record(1, "insert", "killed", **INSERT)], (), [], id="a killed command did not happen"),
        pytest.param([record(1, "insert", "killed", **INSERT)], BOTH, [], id="a killed command happened"),
        pytest.param([record(1, "insert", "unknown", **INSERT)], BOTH[1:], ["torn"], id="half of a command"),
        pytest.param(
            [record(1, "insert", "refused", **INSERT)], BOTH, ["refused and there"] * 3, id="refused and there"
        ),
        pytest.param([record(1, "insert", **INSERT)], (*BOTH, BOTH[0]), ["double", "double"], id="twice"),
        pytest.param([], BOTH[:1], ["double"], id="nobody wrote it"),
        pytest.param(
            [record(1, "insert", **INSERT), record(2, "delete", id=10, began=3, ended=4)],
            BOTH,
            ["deleted and there"],
            id="deleted and there",
        ),
        pytest.param(
            [record(1, "insert", **INSERT), record(2, "update", id=10, began=3, ended=4)],
            BOTH,
            ["loss"],
            id="lost update",
        ),
        pytest.param(
            [record(1, "insert", **INSERT), record(2, "update", "nothing", id=10, began=3, ended=4)],
            BOTH,
            ["stale"],
            id="an old snapshot was read",
        ),
        pytest.param([record(9, "transfer", **MOVED)], (), ["loss"], id="a lost transfer"),
        pytest.param(
            [record(9, "transfer", **MOVED)],
            ((9, 1, 5),),
            ["wrong sum", "wrong sum"],
            id="half of a transfer",
        ),
        pytest.param(
            [record(5, "merge", id=100), record(6, "merge", id=100)], ((100, 5, 5),), ["double"], id="write skew"
        ),
        pytest.param([record(5, "merge", "nothing", id=100)], (), ["loss"], id="it was there and is gone"),
        pytest.param(
            [record(1, "overwrite", p=6, ids=[10, 11]), record(2, "overwrite", p=6, ids=[20, 21], began=3, ended=4)],
            ((10, 6, 1), (11, 6, 1)),
            ["loss"],
            id="a later overwrite is lost",
        ),
        pytest.param([record(1, "overwrite", p=6, ids=[10, 11])], (), ["loss"], id="overwritten and empty"),
        pytest.param([record(1, "tag", "nothing", tag="x")], (), ["tag"], id="a tag is gone"),
    ],
)
def test_the_judge_sees(records: list[Record], rows: tuple[Row, ...], kinds: list[str]) -> None:
    assert found(records, rows) == kinds


def test_no_id_is_given_twice() -> None:
    """With the tenth process a transfer's line had the id that a row of the first process had."""
    ids = Counter[int]()
    for process in range(1, 130):
        maker = Maker(Random(process), process * NUMBERS_OF_ONE, lambda: 0)
        for _ in range(60):
            chosen = maker.chosen({"insert": 1, "transfer": 1, "overwrite": 1}, catalog=None)  # type: ignore[arg-type]
            assert chosen is not None
            ids.update(chosen.told.get("ids", [chosen.told["n"]]))
    assert set(ids.values()) == {1}
    assert min(ids) > max(ACCOUNTS)


def test_a_snapshot_that_cannot_be_read_and_one_with_another_sum_are_seen() -> None:
    table = Table(ROWS, {1: "FileNotFoundError", 2: (*ROWS[:-1], (8, 0, 999)), 3: ROWS}, frozenset())
    faults = judged(Told((), (), 0, 0), table, LAYOUT, tags_may_go=False)
    assert [fault.kind for fault in faults] == ["unreadable", "wrong sum"]


def test_clocks_of_processes_can_be_compared() -> None:
    assert time.get_clock_info("monotonic").monotonic
