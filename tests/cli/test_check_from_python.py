"""`lakeproof.check` with values that it does not take: one sentence; and in the forms that Python has for a list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakeproof
from lakeproof.errors import LakeproofError

CODED = "# coding: nonsense\n"


@pytest.mark.parametrize(
    ("model", "policy", "parameters"),
    [
        (7, None, {}),
        (None, None, {}),
        (b"iceberg", None, {}),
        (["iceberg"], None, {}),
        ("", None, {}),
        ("nosuch", None, {}),
        ("nosuch.sql", None, {}),
        ("nosuch.py", None, {}),
        ("/", None, {}),
        ("x\0.py", None, {}),
        ("x\0.sql", None, {}),
        ("iceberg", 7, {}),
        ("iceberg", ["lakeproof"], {}),
        ("iceberg", "nosuch", {}),
        ("iceberg", "nosuch.toml", {}),
        ("iceberg", "\0.toml", {}),
        ("iceberg", None, {"nosuch": 3}),
        ("iceberg", None, {"": 1}),
        ("iceberg", None, {"preset": 7}),
        ("iceberg", None, {"preset": None}),
        ("iceberg", None, {"num_writers": "two"}),
        ("iceberg", None, {"num_writers": -1}),
        ("iceberg", None, {"num_writers": 1.5}),
        ("iceberg", None, {"num_writers": None}),
        ("iceberg", None, {"num_writers": 10**30}),
        ("iceberg", None, {"num_writers": 10**5000}),
        ("iceberg", None, {"allow_deletes": "perhaps"}),
        ("iceberg", None, {"col1_values": []}),
        ("iceberg", None, {"col1_values": ["jack", "jack"]}),
        ("paimon", None, {"num_buckets": object()}),
    ],
)
def test_what_it_does_not_take_is_said(model: Any, policy: Any, parameters: dict[str, Any]) -> None:
    with pytest.raises(LakeproofError) as caught:
        lakeproof.check(model, policy, **parameters)
    message = getattr(caught.value, "message", str(caught.value))
    assert message
    assert "\n" not in message
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize("seconds", ["soon", 0, -1, float("nan"), float("inf"), None])
def test_seconds_for_jobs_are_a_number(tmp_path: Path, seconds: Any) -> None:
    jobs = tmp_path / "jobs.sql"
    jobs.write_text("create table t (a int) using iceberg;\n-- job: one\ndelete from t where a = 1;\n")
    with pytest.raises(LakeproofError, match="above 0"):
        lakeproof.check(jobs, max_seconds=seconds)


@pytest.mark.parametrize("text", [b"\xff\xfe", b"x = 1\0", b"(" * 5000, b"x = " + b"-" * 200_000 + b"1", b"def"])
def test_a_file_that_is_no_python_is_said(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "model.py").write_bytes(text)
    with pytest.raises(LakeproofError, match="the model is not Python"):
        lakeproof.check(tmp_path / "model.py")


def test_a_list_and_a_path_are_understood() -> None:
    listed = lakeproof.check("iceberg", col1_values=["jack", "sarah"])
    assert listed.parameters["col1-values"] == "jack,sarah"
    assert listed.states == lakeproof.check("iceberg", col1_values="jack,sarah").states
