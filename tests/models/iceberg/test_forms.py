"""The form in which a table is explored loses nothing that a check may ask or a commit may spoil."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from iceberg_runs import READS, forget_everything, holds, searched, violated

from lakeproof.commit.checks import ROW_CHECKS, SNAPSHOT_CHECKS
from lakeproof.commit.policy import POLICIES, Policy
from lakeproof.format import DeleteFile, TableState

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


@pytest.mark.parametrize("seed", range(SEED, SEED + FORMS))
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
