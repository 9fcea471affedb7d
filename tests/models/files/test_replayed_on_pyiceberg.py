"""What the model of files finds under PyIceberg's rules is done by PyIceberg itself, on a real table.

The rules are those of PyIceberg 0.12: a conflict on the last try removes what was written without a look for the own
commit, an expiry asserts nothing, and a commit that is no longer among the snapshots is taken for one that never was.
The faults are the catalog's: a commit that is made and answered with 409, as a transport that sends twice hears it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from lakeproof.checker.search import check
from lakeproof.models.files import build
from lakeproof.models.files.rules_text import rules_from_text

SCHEMA = pa.schema([("id", pa.int64())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)}, schema=SCHEMA)


def seen(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow().column("id").to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table of one row, which PyIceberg made."""
    catalog = SqlCatalog("peer", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    made = catalog.create_table("n.t", SCHEMA, properties={"commit.retry.min-wait-ms": "1"})
    made.append(rows(1))
    return made


def answers_409_after_committing(table: Table, then: Callable[[], None] = lambda: None) -> None:
    """The next request is done, then this happens, and the answer is a conflict; later requests are answered truly."""
    right = table.catalog.commit_table

    def once(*request: Any) -> Any:
        table.catalog.commit_table = right  # type: ignore[method-assign]
        right(*request)
        then()
        raise CommitFailedException("the head is not the expected one")

    table.catalog.commit_table = once  # type: ignore[method-assign,assignment]


def found(parameters: dict[str, str], rules: str) -> set[str]:
    """What the model says of these rules."""
    verdict = check(build(parameters, rules_from_text(rules, place="pyiceberg")))
    return {p.name for p in verdict.properties if p.counts and p.verdict == "violated"}


def test_a_conflict_with_the_own_commit_on_the_last_try_removes_its_files(table: Table) -> None:
    conflict = '[[after]]\nphase = "swap"\nhears = "lost-swap"\nnext = "aborted"'
    sent_twice = '[[after]]\nphase = "swap"\nhears = "no-answer"\nnext = "swap"\nunanswered = false'
    assert "committed_snapshots_are_whole" in found({"lost-answers": "1"}, f"{sent_twice}\n{conflict}")

    with table.transaction() as setting:
        setting.set_properties({"commit.retry.num-retries": "0"})
    answers_409_after_committing(table)
    with pytest.raises(CommitFailedException):
        table.append(rows(2))
    assert len(table.refresh().metadata.snapshots) == 2  # the commit is the head …
    with pytest.raises(FileNotFoundError):
        seen(table)  # … and its manifest list is gone: nobody can read the table


def test_the_same_conflict_with_a_try_left_is_recognized(table: Table) -> None:
    """The control: PyIceberg looks for its snapshot before it tries again, and finds it."""
    answers_409_after_committing(table)
    table.append(rows(2))
    assert seen(table) == [1, 2]


def test_an_expiry_drops_a_tag_that_was_made_meanwhile(table: Table) -> None:
    parameters = {"initial": "two-snapshots", "expiries": "1", "tags": "1", "max-commands": "1"}
    assert found(parameters, '[upkeep]\nexpiry_asserts = "nothing"') == {"tags_stay"}

    old = table.current_snapshot()
    assert old is not None
    table.append(rows(2))
    expiry = table.maintenance.expire_snapshots().by_id(old.snapshot_id)
    table.catalog.load_table("n.t").manage_snapshots().create_tag(old.snapshot_id, "keep").commit()
    expiry.commit()
    assert "keep" not in table.refresh().refs()
    assert table.snapshot_by_id(old.snapshot_id) is None


def test_a_commit_that_was_expired_before_the_look_is_made_twice_and_loses_a_manifest(table: Table) -> None:
    forgetful = (
        'keeps = "last-try"\n[[after]]\nphase = "look"\nhears = "cannot-tell"\nnext = "validate"\nsettles = true'
    )
    parameters = {"initial": "one-row", "expiries": "1", "lost-answers": "1", "max-retries": "2"}
    assert {"no_command_commits_twice", "committed_snapshots_are_whole"} <= found(parameters, forgetful)

    def others() -> None:
        """Somebody appends and expires the snapshot that has just landed."""
        theirs = table.catalog.load_table("n.t")
        landed = theirs.current_snapshot()
        assert landed is not None
        theirs.append(rows(3))
        theirs.maintenance.expire_snapshots().by_id(landed.snapshot_id).commit()

    answers_409_after_committing(table, others)
    table.append(rows(2))
    named = {manifest.manifest_path for manifest in table.refresh().current_snapshot().manifests(table.io)}  # type: ignore[union-attr]
    assert len(named) == 4  # of rows 1 and 3, and two of row 2: the commit was made twice …
    with pytest.raises(FileNotFoundError):
        seen(table)  # … and the first of them was removed as a try that had failed
