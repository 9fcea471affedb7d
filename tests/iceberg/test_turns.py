"""Turns of threads at one table: politeness that nothing depends on."""

from __future__ import annotations

import threading
import time

from lakehouse import Lakehouse, insert, people

from lakeproof.iceberg.committing.patience import Turn


def test_who_waits_goes_on_when_the_other_has_ended() -> None:
    first, second = Turn("one"), Turn("one")
    first.wait(0.01)
    assert first.has_it
    threading.Timer(0.05, first.end).start()
    began = time.monotonic()
    second.wait(30)
    assert second.has_it
    assert time.monotonic() - began < 20
    second.end()


def test_nobody_waits_longer_than_it_would_have_without_turns() -> None:
    first, second, other = Turn("two"), Turn("two"), Turn("another table")
    first.wait(0.01)
    second.wait(0.01)
    other.wait(0.01)
    assert (first.has_it, second.has_it, other.has_it) == (True, False, True)
    second.end()  # a turn that it never had: the first one keeps its own
    third = Turn("two")
    third.wait(0.01)
    assert not third.has_it
    for turn in (first, other):
        turn.end()


def test_a_turn_is_given_back_when_the_commit_has_ended(lake: Lakehouse) -> None:
    table = lake.create()
    tables = [insert(table, people(1)), *(lake.load() for _ in range(3))]
    threads = [threading.Thread(target=insert, args=(each, people(1))) for each in tables for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lake.load().snapshots()) == 13
    turn = Turn(str(table.metadata.table_uuid))
    turn.wait(0.01)
    assert turn.has_it
    turn.end()
