"""No reduction changes a verdict, and what the model promises to the checker is true."""

from __future__ import annotations

import pytest
from test_paimon_presets import checked, violated

from lakeproof.checker.reduction_promises import broken_promises
from lakeproof.models.paimon import build
from lakeproof.models.paimon.parameters import setup_from
from lakeproof.models.paimon.symmetry import bucket_permutations

SMALL = [
    "preset=two-compactors max-compactions=2",
    "preset=two-compactors num-keys=2 allow-deletes=true max-compactions=1",
    "preset=two-compactors compaction=universal dv-conflict-check=true",
    "preset=two-compactors strict-mode=true max-compactions=2",
    "preset=two-compactors num-compactors=1 compaction-rollback=true max-compactions=2",
    "preset=two-writers-one-bucket max-write-ops=2 col3-values=A,B",
    "preset=two-writers-one-bucket max-write-ops=2 sequence-field=true streaming-sink=true",
    "preset=no-put-if-absent",
    "preset=no-put-if-absent use-lock=true",
    "preset=no-put-if-absent put-if-absent=true max-write-ops=3",
    "preset=no-put-if-absent put-if-absent=true num-compactors=2 max-compactions=1",
    "preset=no-put-if-absent put-if-absent=true num-compactors=2 max-compactions=1 committer=apart",
]


@pytest.mark.parametrize("parameters", SMALL)
def test_what_the_model_promises_is_true(parameters: str) -> None:
    model = build(dict(part.split("=", 1) for part in parameters.split()))
    assert model.value_symmetries
    assert broken_promises(model, max_states=4000) == []


@pytest.mark.parametrize("parameters", [*SMALL, "preset=two-compactors", "preset=two-writers-one-bucket"])
def test_no_reduction_changes_a_verdict(parameters: str) -> None:
    reduced, plain = checked(parameters), checked(parameters, reductions=False)
    assert violated(reduced) == violated(plain)
    assert reduced.unreached == plain.unreached
    assert reduced.states < plain.states


def test_each_reduction_alone_makes_the_space_smaller() -> None:
    plain = checked("preset=two-compactors", reductions=False).states
    assert plain == 3333
    sizes = {
        name: checked("preset=two-compactors", reductions={name}).states for name in ("processes", "values", "private")
    }
    assert all(size < plain for size in sizes.values())


def test_jobs_change_places_with_their_buckets() -> None:
    """Two jobs with two buckets each: they change places, and so do each one's buckets, in 8 ways."""
    found = list(bucket_permutations(setup_from({"preset": "one-writer-per-bucket"})))
    assert len(found) == 8
    assert found[0] == ((0, 1, 2, 3), (0, 1))
    assert ((1, 0, 3, 2), (1, 0)) in found
    assert ((1, 0, 2, 3), (1, 0)) not in found


def test_buckets_stay_where_strict_mode_looks_at_partitions_or_keys_are_uneven() -> None:
    strict = setup_from({"preset": "one-writer-per-bucket", "strict-mode": "true"})
    assert len(list(bucket_permutations(strict))) == 1
    uneven = setup_from({"num-keys": "3"})
    assert len(list(bucket_permutations(uneven))) == 1
