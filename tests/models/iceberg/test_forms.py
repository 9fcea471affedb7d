"""The form in which a table is explored loses nothing that a check may ask or a commit may spoil."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from iceberg_runs import LAKEPROOF, READS, forget_everything, holds, searched, violated

from in_part import in_part
from lakeproof.commit.change import Command, Isolation, Mode
from lakeproof.commit.checks import ROW_CHECKS, SNAPSHOT_CHECKS
from lakeproof.commit.meaning import Assignment, Merge, MergeClause, RowCommand, Term
from lakeproof.commit.policy import POLICIES, Policy
from lakeproof.commit.writing import first_files, plan_of, written
from lakeproof.filters import Compare
from lakeproof.format import DeleteFile, Row, TableShape, TableState
from lakeproof.models.iceberg.workload import COLUMNS
from lakeproof.models.questions.necessity import necessity

snapshots = import_module("lakeproof.commit.snapshots")  # the package gives the function of that name
FORMS = int(os.environ.get("LAKEPROOF_FORMS", "12"))
SEED = int(os.environ.get("LAKEPROOF_FORMS_SEED", "1"))


@pytest.fixture(autouse=True)
def _no_answer_outlives_its_rule() -> Iterator[None]:
    forget_everything()
    yield
    forget_everything()


# ---------------------------------------------------------------- P1: bounds of files that others removed


def test_a_filter_of_removed_files_is_asked_as_on_a_real_table() -> None:
    canonical, by_age = (searched("pyiceberg", preset="write-skew", names=names) for names in ("canonical", "by-age"))
    assert violated(canonical) == violated(by_age) == {"isolation_kept"}


# ---------------------------------------------------------------- P2: what a commit does with delete files

SHAPE = TableShape(COLUMNS)
TWO_ROWS: dict[str, Any] = {"num_keys": 2, "initial": "one-file", "predicates": "id", "max_write_ops": 2}


def drop_every_older_delete(patch: pytest.MonkeyPatch) -> None:
    """Every commit drops every delete file that was there before it."""
    patch.setattr(snapshots, "dropped_delete_files", lambda head, *_: frozenset(f.path for f in head.delete_files))


def replace_vectors_unmerged(patch: pytest.MonkeyPatch) -> None:
    """A new deletion vector replaces the old one of its file without its positions."""
    right = snapshots.added_delete_files

    def added(head: TableState, *rest: Any) -> tuple[tuple[DeleteFile, ...], frozenset[str]]:
        files, replaced = right(head, *rest)
        new, _ = right(head._replace(delete_files=()), *rest)
        return (new if replaced else files), replaced

    patch.setattr(snapshots, "added_delete_files", added)


@pytest.mark.parametrize(
    ("fault", "version"), [(drop_every_older_delete, 2), (drop_every_older_delete, 3), (replace_vectors_unmerged, 3)]
)
def test_the_default_form_sees_what_a_commit_does_with_delete_files(
    fault: Callable[[pytest.MonkeyPatch], None], version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert holds(searched(format_version=version, **TWO_ROWS))
    forget_everything()
    fault(monkeypatch)
    assert violated(searched(format_version=version, **TWO_ROWS)) & READS == READS
    forget_everything()
    endless = {**TWO_ROWS, "max_write_ops": "unbounded", "num_writers": 1, "format_version": version}
    assert violated(searched(**endless)) & READS == READS


# ---------------------------------------------------------------- canonical equals by-age


def weakened(dice: random.Random) -> Policy:
    """A shipped policy, or one with a check taken away."""
    policy = POLICIES[dice.choice(list(POLICIES))]
    checks = sorted({check for line in policy.lines for part in line[2:] for check in part})
    found = [check for check in checks if check in ROW_CHECKS or check in SNAPSHOT_CHECKS]
    return policy.without(dice.choice(found)) if dice.random() < 0.6 else policy


def workload(dice: random.Random) -> dict[str, Any]:
    """A small space of two writers."""
    kinds = ["insert", "update", "delete", "merge", "delete-exists", "overwrite"]
    modes = ("merge-on-read", "copy-on-write")
    return {
        "commands": ",".join(dice.sample(kinds, 3)),
        "num_keys": 2,
        "initial": dice.choice(("one-file", "two-files")),
        "predicates": "id",
        "isolation": dice.choice(("snapshot", "serializable")),
        "update_mode": dice.choice(modes),
        "delete_mode": dice.choice(modes),
        "max_write_ops": 2,
        "max_compactions": dice.choice((0, 0, 1)),
        "format_version": dice.choice((2, 2, 3)),
        "partitioned": dice.random() < 0.2,
        "measure_aborts": False,
        "lean": False,
    }


@pytest.mark.parametrize("seed", in_part(range(SEED, SEED + FORMS), every=4))
def test_the_canonical_form_and_names_by_age_agree(seed: int) -> None:
    dice = random.Random(seed)
    policy, parameters = weakened(dice), workload(dice)
    canonical, by_age = (searched(policy, names=names, **parameters) for names in ("canonical", "by-age"))
    assert violated(canonical) == violated(by_age), (policy.name, parameters)
    reached = [
        {p.name for p in one.properties if p.kind == "reachable" and p.verdict == "holds"}
        for one in (canonical, by_age)
    ]
    assert reached[0] == reached[1], (policy.name, parameters)


# ---------------------------------------------------------------- P6, P7: what the judge and a MERGE know of rows


def test_the_judge_names_the_row_that_a_copy_meant_to_change() -> None:
    """Both writers rewrite jack; sarah is only copied, also after her file is gone."""
    found = necessity(POLICIES["iceberg-spark-fixed"], "missing_delete_paths")
    assert found.trace is not None
    assert found.trace.steps[-1].caption.endswith("it should see jack blue A; sarah red A.")


def test_a_row_that_a_merge_matches_and_leaves_alone_is_read() -> None:
    source: tuple[Row, ...] = (("jack", "blue", "A"), ("mary", "red", "A"))
    only_red = MergeClause("matched", "update", Compare("color", "=", "red"), (Assignment("color", Term("blue")),))
    inserts = MergeClause("not matched", "insert", values=tuple(Term(column=name, source=True) for name in COLUMNS))
    table = first_files([[("jack", "green", "A"), ("sarah", "red", "A")]], SHAPE)
    for clauses, reads in (((only_red, inserts), (("data-1", 1),)), ((only_red,), ())):
        merge = RowCommand(Command.MERGE, merge=Merge(COLUMNS, source, (("name", "name"),), clauses))
        plan = plan_of(merge, SHAPE, LAKEPROOF, table_mode=Mode.MERGE_ON_READ, isolation=Isolation.SERIALIZABLE)
        done = written(merge, table, SHAPE, plan, "me")
        assert (done.change.reads if done is not None else ()) == reads
