"""Requests to the catalog that are answered late or never: no row is lost, doubled or left without its file."""

import pytest
from commit_hooks import FAST, LateRequest, expire_all_but_the_head, fail_next_read, fail_once, nth, once, orphans
from lakehouse import Lakehouse, insert, people, rows_of, write

from lakeproof.commit import Command, Conflict, Isolation, TableChange
from lakeproof.errors import CommitConflict, CommitUnknown
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.whole_file_commits import CommitOptions, append
from lakeproof.iceberg.pyiceberg_names import Table


def test_a_late_request_that_wins_over_the_second_one_keeps_its_files(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    late: list[LateRequest] = []
    hook = nth(lambda: late.append(LateRequest(lake)), lambda: late[0].arrives())
    answer = append(table, write(table, people(2)), CommitOptions(on_phase=hook))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x")]
    assert [s.snapshot_id for s in lake.load().metadata.snapshots][-1] == answer.snapshot_id
    assert orphans(lake.load()) == ()


def test_a_lost_swap_does_not_settle_an_earlier_request(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    late: list[LateRequest] = []

    def lands_and_is_expired() -> None:
        late[0].arrives()
        insert(lake.load(), people(3))
        expire_all_but_the_head(lake)

    hook = nth(lambda: late.append(LateRequest(lake)), lands_and_is_expired)
    with pytest.raises(CommitUnknown, match="look for snapshot"):
        append(table, write(table, people(2)), CommitOptions(on_phase=hook))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x"), (3, "x")]


def test_a_late_request_that_lands_after_its_writer_gave_up_is_readable(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    late: list[LateRequest] = []
    hook = nth(lambda: late.append(LateRequest(lake, then=fail_next_read)))
    with pytest.raises(CommitUnknown):
        append(table, write(table, people(2)), CommitOptions(on_phase=hook))
    assert rows_of(lake.load()) == [(1, "x")]
    late[0].arrives()
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x")]


def test_a_lost_swap_after_which_nobody_can_look_is_unknown(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    late: list[LateRequest] = []

    def lands_and_the_catalog_is_gone() -> None:
        late[0].arrives()
        fail_next_read()

    hook = nth(lambda: late.append(LateRequest(lake)), lands_and_the_catalog_is_gone)
    with pytest.raises(CommitUnknown):
        append(table, write(table, people(2)), CommitOptions(on_phase=hook))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x")]


def test_an_interrupt_while_a_request_is_open_removes_nothing_and_says_so(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    late: list[LateRequest] = []

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        append(
            table,
            write(table, people(2)),
            CommitOptions(on_phase=nth(lambda: late.append(LateRequest(lake)), interrupt)),
        )
    assert "nobody knows whether INSERT" in caught.value.__notes__[0]
    late[0].arrives()
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x")]


def test_a_lost_answer_whose_snapshot_was_expired_is_never_committed_again(lake: Lakehouse) -> None:
    table = lake.create(properties=FAST)  # scanned empty: an expiry leaves a line without a visible hole

    def committed_then_expired() -> None:
        for number in (2, 3):
            insert(lake.load(), people(number))
        expire_all_but_the_head(lake)

    hook = once(lambda: fail_once("after_commit", then=committed_then_expired))
    with pytest.raises(CommitUnknown):
        append(table, write(table, people(1)), CommitOptions(on_phase=hook))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x"), (3, "x")]


def reads_the_table(table: Table) -> TableChange:
    """An INSERT … SELECT of the table's own rows, at serializable."""
    scanned = table.current_snapshot()
    number = None if scanned is None else scanned.snapshot_id
    return TableChange(Command.INSERT_SELECT, isolation=Isolation.SERIALIZABLE, command_id="r", scan_snapshot=number)


@pytest.mark.parametrize(("others", "known"), [((2,), True), ((2, 3), False)])
@pytest.mark.parametrize("first", [(), (1,)])
def test_an_expiry_neither_hides_a_hole_in_the_window_nor_invents_one(
    lake: Lakehouse, first: tuple[int, ...], others: tuple[int, ...], *, known: bool
) -> None:
    table = lake.create()
    if first:
        insert(table, people(*first))
    stale = lake.load()
    files = write(stale, people(9))
    for number in others:
        insert(lake.load(), people(number))
    expire_all_but_the_head(lake)
    with pytest.raises(CommitConflict) as caught:
        commit_change(stale, reads_the_table(stale), NewFiles(tuple(files)))
    assert isinstance(caught.value.conflict, Conflict)
    assert caught.value.conflict.check == ("new_rows_match" if known else "history_known")
