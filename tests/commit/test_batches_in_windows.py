"""A batch of a stream in the window: found under its query and number, whoever committed it, or nobody can tell."""

from __future__ import annotations

import pytest

from lakeproof.commit import Command, Commit, Mode, Policy, Refuse, TableChange, checks_of, followed_all, validate
from lakeproof.commit.change import Isolation
from lakeproof.commit.policy import POLICIES
from lakeproof.commit.validation import AlreadyCommitted, Answer
from lakeproof.format import Operation, Snapshot, StreamBatch, TableShape

MINE = StreamBatch("mine", 5)


def answer(*seen: StreamBatch | None, missing: int | None = None, policy: str = "lakeproof") -> Answer:
    """What a batch hears behind snapshots of these batches."""
    chosen: Policy = POLICIES[policy]
    change = TableChange(Command.INSERT, command_id="c", batch=MINE)
    checks = checks_of(chosen, change.command, Mode.MERGE_ON_READ, Isolation.SNAPSHOT, 2)
    snapshots = [Snapshot(n, n, Operation.APPEND, n - 1, batch=each) for n, each in enumerate(seen, 1)]
    window = followed_all(change, snapshots, checks, TableShape(("id",)), missing=missing)
    return validate(change, window, chosen, checks, reruns_left=False)


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize(
    ("seen", "repeated"),
    [
        pytest.param((), False, id="nobody committed"),
        pytest.param((None, None), False, id="others committed"),
        pytest.param((MINE,), True, id="the batch itself"),
        pytest.param((MINE, None), True, id="the batch, and somebody after it"),
        pytest.param((MINE._replace(epoch=7),), True, id="a later batch of the query"),
        pytest.param((MINE._replace(epoch=4),), False, id="an earlier batch of the query"),
        pytest.param((StreamBatch("other", 5),), False, id="the same number of another query"),
        pytest.param((StreamBatch("other", 9),), False, id="a later number of another query"),
    ],
)
def test_a_batch_is_looked_for_by_query_and_number(
    seen: tuple[StreamBatch | None, ...], repeated: bool, policy: str
) -> None:
    assert answer(*seen, policy=policy) == (AlreadyCommitted() if repeated else Commit())


def test_in_a_window_with_a_hole_nobody_can_tell() -> None:
    refused = answer(None, missing=77)
    assert isinstance(refused, Refuse)
    assert (refused.conflict.check, refused.conflict.snapshot) == ("history_known", 77)
    assert answer(MINE, missing=77) == AlreadyCommitted()
