"""pypaimon itself: the two-writer trace replayed on a real table, and its conflict rules beside our reading of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lakeproof.checker.limits import Cut, Watch
from lakeproof.checker.readable import Successors, explore
from lakeproof.checker.search import check
from lakeproof.checker.tables import Tables
from lakeproof.checker.verdicts.ledger import Ledger
from lakeproof.errors import InvalidInput
from lakeproof.models.paimon import build, setup_from
from lakeproof.models.paimon.conflict_checks import JAVA, PYPAIMON, first_conflict
from lakeproof.models.paimon.replaying import case_of, writes_and_commits
from lakeproof.models.paimon.world import WRITTEN, Bucket, Busy, Rewrite
from lakeproof.replay.pypaimon_replay import ask_pypaimon, install_pypaimon, python_of, replay

ROOT = Path(__file__).parents[2]
TWO_WRITERS = {"preset": "two-writers-one-bucket", "num-keys": "1", "streaming-sink": "true"}
AS_PYPAIMON = {"sequence-init": "each-write", "sequence-ties": "later-file"}


@pytest.fixture(scope="module")
def python() -> Path:
    folder = ROOT / ".venv-pypaimon"
    found = python_of(folder)
    if found is None:
        try:
            found = install_pypaimon(folder)
        except (InvalidInput, OSError) as error:
            pytest.skip(f"no environment with pypaimon: {error}")
    return found


def trace_commands(parameters: dict[str, str]) -> list[dict[str, object]]:
    verdict = check(build(parameters))
    trace = next(one.trace for one in verdict.properties if one.name == "consistent_read")
    assert trace is not None
    return writes_and_commits(setup_from(parameters), trace)


def test_the_commands_of_the_two_writer_trace() -> None:
    """A slow delete: it restores its number before the insert that it is committed after."""
    commands = trace_commands({**TWO_WRITERS, **AS_PYPAIMON, "max-write-ops": "4"})
    assert [(one["actor"], one["do"]) for one in commands] == [
        ("writer-1", "write"),
        ("writer-1", "commit"),
        ("writer-1", "write"),
        ("writer-2", "write"),
        ("writer-1", "commit"),
        ("writer-1", "write"),
        ("writer-1", "commit"),
        ("writer-2", "commit"),
    ]
    assert commands[-1]["reads"] != commands[-1]["expected"]


def test_a_trace_with_a_compaction_is_not_for_a_writer() -> None:
    parameters = {"preset": "two-compactors"}
    verdict = check(build(parameters))
    trace = next(one.trace for one in verdict.properties if one.name == "one_valid_row_per_key")
    assert trace is not None
    with pytest.raises(InvalidInput, match="start_compaction"):
        writes_and_commits(setup_from(parameters), trace)


@pytest.mark.peer
def test_pypaimon_loses_the_write_that_the_model_says_it_loses(python: Path, tmp_path: Path) -> None:
    commands = trace_commands({**TWO_WRITERS, **AS_PYPAIMON, "max-write-ops": "4"})
    replayed = replay(commands, python=python, warehouse=tmp_path)
    assert replayed.differences == ()
    assert replayed.agrees
    assert replayed.readings[-1]["rows"] != commands[-1]["expected"]
    assert replayed.readings[-1]["sequences"] == [0, 1, 2, 1]


@pytest.mark.peer
def test_pypaimon_differs_where_the_model_lets_the_earlier_file_win_a_tie(python: Path, tmp_path: Path) -> None:
    commands = trace_commands({**TWO_WRITERS, "sequence-init": "each-write", "max-write-ops": "3"})
    replayed = replay(commands, python=python, warehouse=tmp_path)
    assert not replayed.agrees
    assert replayed.readings[-1]["rows"] == commands[-1]["expected"]


def changes_met(parameters: dict[str, str]) -> list[tuple[Rewrite, Bucket]]:
    """Every change that some compactor is about to commit, with the bucket that it finds, where that has no vectors."""
    tables = Tables(build(parameters), private=False, values=False)
    explore(Successors(tables, symmetric=False), Ledger(tables), Watch(Cut(None, None, False)))
    found: dict[Any, Any] = {}
    for kind, rows in enumerate(tables.rows):
        for key in rows:
            shared, own = tables.shared.values[key >> 32], tables.owns[kind].values[key & 0xFFFFFFFF]
            if isinstance(own, Busy) and own.phase == WRITTEN and isinstance(own.work, Rewrite):
                head = shared.buckets[own.work.bucket]
                if not head.vectors and not own.work.seen_vectors:
                    found[own.work, head] = None
    return list(found)


@pytest.mark.peer
@pytest.mark.parametrize("compaction", ["single-level", "universal"])
def test_our_reading_of_pypaimons_rules_is_pypaimons(compaction: str, python: Path, tmp_path: Path) -> None:
    changes = changes_met({"preset": "two-compactors", "compaction": compaction, "compare-rules": "true"})
    ours = [first_conflict(PYPAIMON, *change) for change in changes]
    theirs = ask_pypaimon([case_of(*change) for change in changes], python=python, warehouse=tmp_path)
    words = {"file_deletion_conflict": "File deletion", "deletion_vector_index_conflict": "Deletion vector index"}
    for our, their in zip(ours, theirs, strict=True):
        assert (our is None) == (their is None)
        if our is not None and their is not None:
            assert their.startswith(words[our[0]])
    java = [first_conflict(JAVA, *change) for change in changes]
    kinds = Counter((one is None, other is None) for one, other in zip(java, theirs, strict=True))
    assert len(changes) > 20
    if compaction == "single-level":
        assert set(kinds) == {(True, True), (False, False), (True, False), (False, True)}
