"""Golden files: compare with them, or write them anew with `LAKEPROOF_GOLDEN=write pytest tests/report`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from lakeproof.checker.verdicts.verdict import Verdict

FOLDER = Path(__file__).parent / "golden"


def same_as_golden(name: str, text: str) -> None:
    """The text is what the golden file holds."""
    path = FOLDER / name
    if os.environ.get("LAKEPROOF_GOLDEN") == "write":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def settled(verdict: Verdict) -> Verdict:
    """The verdict with times that do not vary."""
    return replace(verdict, seconds=0.1, compile_seconds=0.0, peak_memory_mb=100.0)
