"""Batches of streams on real tables: a batch is in the branch once, whoever tries, whatever answer is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from commit_hooks import FAST, LateRequest, expire_all_but_the_head, fail_once, once
from lakehouse import Lakehouse, files_below, insert, people, rows_of, write

from lakeproof.commit import window as window_module
from lakeproof.errors import CommitConflict
from lakeproof.filters import ALWAYS
from lakeproof.format import StreamBatch
from lakeproof.iceberg.committing import window as loading
from lakeproof.iceberg.committing.commit import LOOKING, METADATA_WRITTEN, Committed
from lakeproof.iceberg.committing.whole_file_commits import CommitOptions, append, overwrite_where
from lakeproof.iceberg.committing.window import branch_has_batch
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.branches import at_branch
from lakeproof.iceberg.tables.refs import create_branch

BATCH = StreamBatch("query", 1)


def commit(table: Table, batch: StreamBatch = BATCH, **options: object) -> Committed:
    """The rows of a batch: its own number."""
    files = write(table, people(batch.epoch))
    return append(table, files, CommitOptions(batch=batch, **options))  # type: ignore[arg-type]


def stream(table: Table, batch: StreamBatch = BATCH) -> None:
    """As a sink does it: look, then commit."""
    if not branch_has_batch(table, batch):
        commit(table, batch)


def numbers(lake: Lakehouse) -> list[object]:
    return [row[0] for row in rows_of(lake.load())]


# ---------------------------------------------------------------- each moment, and what the table must hold after it


def after_the_swap(lake: Lakehouse) -> list[object]:
    """The process died after the swap, before the checkpoint knew; the batch comes again."""
    stream(lake.load())
    stream(lake.load())
    return [1]


def behind_another_writer(lake: Lakehouse) -> list[object]:
    """The same, and somebody else has committed since."""
    stream(lake.load())
    insert(lake.load(), people(50))
    stream(lake.load())
    return [1, 50]


def of_another_query(lake: Lakehouse) -> list[object]:
    """Another query has a higher number in the table; that says nothing of this one."""
    stream(lake.load(), StreamBatch("other", 9))
    stream(lake.load())
    return [1, 9]


def before_the_swap(lake: Lakehouse) -> list[object]:
    """A process that was thought dead stands before its swap while the new one commits the batch."""
    stale = lake.load()
    commit(stale, on_phase=once(lambda: stream(lake.load())))
    return [1]


def long_before(lake: Lakehouse) -> list[object]:
    """The same, and the new process has come to the next batch, and others have committed."""

    def others() -> None:
        stream(lake.load())
        stream(lake.load(), StreamBatch("query", 2))
        insert(lake.load(), people(50))

    commit(lake.load(), on_phase=once(others))
    return [1, 2, 50]


def answer_lost_after(lake: Lakehouse) -> list[object]:
    """The swap was done and its answer lost."""
    commit(lake.load(), on_phase=once(lambda: fail_once("after_commit")))
    stream(lake.load())
    return [1]


def answer_lost_before(lake: Lakehouse) -> list[object]:
    """The swap was not done, and nobody said so."""
    commit(lake.load(), on_phase=once(lambda: fail_once("before_commit")))
    stream(lake.load())
    return [1]


def answer_late(lake: Lakehouse) -> list[object]:
    """A new process commits the batch while the request of the old one is under way."""
    late: list[LateRequest] = []
    asked, others = once(lambda: late.append(LateRequest(lake))), once(lambda: stream(lake.load()), at=LOOKING)
    commit(lake.load(), on_phase=lambda phase: (asked(phase), others(phase)))
    with pytest.raises(AssertionError):  # the catalog takes no request for a former head
        late[0].arrives()
    return [1]


MOMENTS: list[Callable[[Lakehouse], list[object]]] = [
    *(after_the_swap, behind_another_writer, of_another_query, before_the_swap, long_before),
    *(answer_lost_after, answer_lost_before, answer_late),
]


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)
def test_a_batch_is_there_once(moment: Callable[[Lakehouse], list[object]], lake: Lakehouse) -> None:
    lake.create(properties=FAST)
    assert moment(lake) == numbers(lake)


def not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "has_batch", lambda *given: False)
    monkeypatch.setattr(window_module, "has_batch", lambda *given: False)


def not_looked_for_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "has_batch", lambda *given: False)


def not_looked_for_by_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_module, "has_batch", lambda *given: False)


def only_in_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    real = loading.unseen_snapshots

    def newest(table: Table, *, scan_snapshot: int | None, head_snapshot: int | None) -> object:
        found = real(table, scan_snapshot=scan_snapshot, head_snapshot=head_snapshot)
        return found if scan_snapshot is not None else found._replace(unseen=found.unseen[-1:])

    monkeypatch.setattr(loading, "unseen_snapshots", newest)


def of_any_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamBatch, "comes_after", lambda self, other: self.epoch >= other.epoch)


def only_the_same_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamBatch, "comes_after", lambda self, other: False)


PLANTED = [
    *(not_looked_for, not_looked_for_before, not_looked_for_by_the_commit),
    *(only_in_the_newest, of_any_query, only_the_same_number),
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_planted_errors_are_found(
    plant: Callable[[pytest.MonkeyPatch], None], lake: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create(properties=FAST)
    plant(monkeypatch)
    wrong = []
    for moment in MOMENTS[:5]:
        lake.catalog.drop_table("default.t")
        lake.create(properties=FAST)
        if moment(lake) != numbers(lake):
            wrong.append(moment.__name__)
    assert wrong, "no moment shows the planted error"


# ---------------------------------------------------------------- what else is true of them


def test_a_batch_that_is_there_leaves_no_metadata(lake: Lakehouse) -> None:
    lake.create(properties=FAST)
    stale = lake.load()
    before = files_below(stale.location())
    done = commit(stale, on_phase=once(lambda: stream(lake.load())))
    assert done.snapshot_id is None
    new = files_below(stale.location()) - before
    names = {path for path in new if path.startswith("metadata/")}
    alone = Lakehouse(lake.folder / "other")
    alone.create(properties=FAST)
    empty = files_below(alone.load().location())
    stream(alone.load())
    assert len(names) == len({path for path in files_below(alone.load().location()) - empty if "metadata/" in path})


def test_a_whole_overwrite_is_a_batch_too(lake: Lakehouse) -> None:
    lake.create(properties=FAST)
    insert(lake.load(), people(7))
    stale = lake.load()
    for table, expected in ((stale, True), (stale, False)):
        done = overwrite_where(table, ALWAYS, write(table, people(1)), CommitOptions(batch=BATCH))
        assert (done.snapshot_id is not None) == expected
    assert numbers(lake) == [1]


def test_the_summary_speaks_as_apache_iceberg_does(lake: Lakehouse) -> None:
    lake.create()
    snapshot = commit(lake.load()).table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    said = snapshot.summary.additional_properties
    assert (said["spark.sql.streaming.queryId"], said["spark.sql.streaming.epochId"]) == ("query", "1")


def test_each_branch_takes_the_batch_once(lake: Lakehouse) -> None:
    table = create_branch(insert(lake.create(), people(9)), "b")
    for _ in range(2):
        for name in ("main", "b"):
            stream(at_branch(lake.load(), name))
    assert numbers(lake) == [1, 9]
    assert len(at_branch(lake.load(), "b").scan(snapshot_id=lake.load().metadata.refs["b"].snapshot_id).to_arrow()) == 2
    assert table is not None


def test_after_an_expiry_nobody_can_tell_unless_an_earlier_batch_can(lake: Lakehouse) -> None:
    lake.create()
    assert branch_has_batch(lake.load(), BATCH) is False
    stream(lake.load())
    insert(lake.load(), people(50))
    expire_all_but_the_head(lake)
    assert branch_has_batch(lake.load(), BATCH) is None
    commit(lake.load(), StreamBatch("query", 2))
    assert branch_has_batch(lake.load(), BATCH) is True
    assert branch_has_batch(lake.load(), StreamBatch("query", 3)) is False
    assert branch_has_batch(lake.load(), StreamBatch("other", 3)) is None


def test_a_commit_that_was_overtaken_by_an_expiry_is_refused(lake: Lakehouse) -> None:
    lake.create(properties=FAST)
    insert(lake.load(), people(7))

    def others() -> None:
        stream(lake.load())
        insert(lake.load(), people(50))
        insert(lake.load(), people(51))
        expire_all_but_the_head(lake)

    phases: list[str] = []
    hook = once(others)

    def watched(phase: str) -> None:
        phases.append(phase)
        hook(phase)

    with pytest.raises(CommitConflict, match="history_known"):
        commit(lake.load(), on_phase=watched)
    assert set(numbers(lake)) == {1, 7, 50, 51}
    assert len(numbers(lake)) == 4
    assert METADATA_WRITTEN in phases
    assert LOOKING not in phases
