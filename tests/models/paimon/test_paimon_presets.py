"""The verdicts of the presets, with their exact sizes: a change of either is a change of the model."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from lakeproof.checker.search import check
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.models.paimon import PARAMETERS, PRESETS, build, parameter_help


def checked(text: str, **options: object) -> Verdict:
    return check(build(dict(part.split("=", 1) for part in text.split())), **options)  # type: ignore[arg-type]


def violated(verdict: Verdict) -> dict[str, int | None]:
    return {one.name: one.depth for one in verdict.properties if one.kind != "reachable" and one.verdict != "holds"}


@pytest.mark.parametrize(
    ("preset", "states", "broken"),
    [
        ("one-writer-per-bucket", 7470, {}),
        ("one-writer-per-bucket dv-enabled=false", 7470, {}),
        ("one-writer-per-bucket streaming-sink=true", 6602, {}),
        ("one-writer-per-bucket-lock", 11789, {}),
        ("one-writer-per-bucket-lock dv-enabled=false", 11789, {}),
        ("two-writers-one-bucket", 1075, {"consistent_read": 8}),
        ("two-compactors", 792, {"no_dangling_deletion_vectors": 20, "one_valid_row_per_key": 20}),
        ("no-put-if-absent", 43, {"consistent_read": 8}),
        ("no-put-if-absent use-lock=true", 65, {}),
        ("no-put-if-absent put-if-absent=true", 41, {}),
    ],
)
def test_a_preset_has_its_verdict_and_its_size(preset: str, states: int, broken: dict[str, int]) -> None:
    verdict = checked(f"preset={preset}")
    assert violated(verdict) == broken
    assert verdict.verdict == ("violated" if broken else "holds")
    assert (verdict.states, verdict.exhausted, verdict.unreached) == (states, True, ())


def test_the_specifications_property_names_are_kept() -> None:
    names = {one.name: one.seed_name for one in build({"preset": "one-writer-per-bucket"}).properties if one.seed_name}
    assert names == {
        "sequential_snapshot_ids": "SequentialSnapshotIds",
        "consistent_read": "ConsistentRead",
        "no_bad_state": "NoBadState",
        "no_dangling_deletion_vectors": "NoDanglingDeletionVectors",
        "one_valid_row_per_key": "DVEnabledOnlyOneValidRowPerPkInLevels1Plus",
        "all_snapshots_committed": "AllSnapshotsCommitted",
    }


def test_all_snapshots_are_asked_for_only_where_nothing_is_refused_by_design() -> None:
    def asked(parameters: dict[str, str]) -> bool:
        return "all_snapshots_committed" in {one.name for one in build(parameters).properties}

    assert asked({"preset": "one-writer-per-bucket"})
    assert asked({"preset": "one-writer-per-bucket-lock"})
    assert not asked({"preset": "two-compactors"})
    assert not asked({"preset": "one-writer-per-bucket", "strict-mode": "true"})


def test_a_write_that_waits_for_ever_is_found() -> None:
    """Without it `all_snapshots_committed` could hold for want of a search."""
    model = build({"preset": "no-put-if-absent", "use-lock": "true"})
    steps = {kind: tuple(step for step in steps if step.name != "swap") for kind, steps in model.steps.items()}  # type: ignore[union-attr]
    verdict = check(model.__class__(**{**model.__dict__, "steps": steps}))
    assert "all_snapshots_committed" in violated(verdict)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_names_parameters_only(preset: str) -> None:
    assert set(PRESETS[preset]) <= set(PARAMETERS)
    assert build({"preset": preset}).parameters == PRESETS[preset]


def test_every_parameter_has_help() -> None:
    assert parameter_help()["max-level"] == "the highest level of a bucket's LSM tree (count, default 2)"
    assert set(parameter_help()) == set(PARAMETERS)


def test_two_compactors_without_guards_takes_under_two_seconds_and_200_mb() -> None:
    """The public checker found nothing in 330 s and 10 GB; a process of its own, so that nothing else is measured."""
    program = (
        "import json; from lakeproof.models.paimon import build; from lakeproof.checker.search import check\n"
        "v = check(build({'preset': 'two-compactors'}))\n"
        "kib = next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1]\n"
        "print(json.dumps([v.verdict, v.exhausted, v.seconds, int(kib) / 1000]))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    verdict, exhausted, seconds, megabytes = json.loads(run.stdout)
    assert (verdict, exhausted) == ("violated", True)
    assert seconds < 2
    assert megabytes < 200


@pytest.mark.slow
def test_four_writes_and_six_compactions_are_exhausted_in_little_memory() -> None:
    """Named by commits, as the public specification names files, this space has 29 million states."""
    verdict = checked("preset=two-compactors max-write-ops=4 max-compactions=6", reductions=False)
    assert verdict.exhausted
    assert verdict.states == 1_983_069
    assert verdict.peak_memory_mb < 2000
    assert violated(verdict) == {"no_dangling_deletion_vectors": 20, "one_valid_row_per_key": 20}
