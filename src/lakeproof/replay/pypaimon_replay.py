"""Replays writers' commands on real pypaimon tables, and asks pypaimon's own conflict detection about changes.

pypaimon lives in an environment of its own (`.venv-pypaimon`, or the one whose Python `LAKEPROOF_PYPAIMON` names),
because it needs other versions of libraries than we do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lakeproof.errors import InvalidInput

DRIVER = Path(__file__).with_name("pypaimon_driver.py")
PACKAGE = "pypaimon==2.1.0"


class Replayed(NamedTuple):
    """What came of a replay, in the words of `lakeproof replay`."""

    on: str
    agrees: bool
    differences: tuple[str, ...]
    readings: tuple[Mapping[str, Any], ...]


def python_of(folder: Path) -> Path | None:
    """The Python of an environment that has pypaimon; `None` if there is none."""
    named = os.environ.get("LAKEPROOF_PYPAIMON")
    python = Path(named) if named else folder / "bin" / "python"
    if not python.exists():
        return None
    probe = subprocess.run([python, "-c", "import pypaimon"], capture_output=True, check=False, timeout=120)
    return python if probe.returncode == 0 else None


def install_pypaimon(folder: Path) -> Path:
    """Build the environment; raises `InvalidInput` with pip's last line if the package cannot be had."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise InvalidInput(f"pypaimon cannot be installed: {reason}", place=str(folder), hint="connect to an index")
    return python


def replay(commands: Sequence[Mapping[str, Any]], *, python: Path, warehouse: Path) -> Replayed:
    """Drive pypaimon through the commands and compare what it reads after each commit with what the model reads."""
    told = _ask(python, {"warehouse": str(warehouse), "options": {}, "commands": list(commands), "cases": []})
    commits = [command for command in commands if command["do"] == "commit"]
    differences = []
    for number, (commit, reading) in enumerate(zip(commits, told["readings"], strict=True), 1):
        if reading["rows"] != commit["reads"]:
            said = f"after commit {number} by {commit['actor']}: the model reads {commit['reads']}"
            differences.append(f"{said}, pypaimon reads {reading['rows']}")
    return Replayed("pypaimon", not differences, tuple(differences), tuple(told["readings"]))


def ask_pypaimon(cases: Sequence[Mapping[str, Any]], *, python: Path, warehouse: Path) -> list[str | None]:
    """What pypaimon's conflict detection says to each change; `None`: it would commit it."""
    request = {"warehouse": str(warehouse), "options": {}, "commands": [], "cases": list(cases)}
    answers: list[str | None] = _ask(python, request)["judged"]
    return answers


def _ask(python: Path, request: Mapping[str, Any]) -> Any:
    command = [str(python), "-P", str(DRIVER)]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise InvalidInput(f"pypaimon could not do what it was asked: {reason}", place=str(python))
    return json.loads(done.stdout)


def main() -> None:
    """Build the environment beside the project."""
    print(install_pypaimon(Path(sys.argv[1] if len(sys.argv) > 1 else ".venv-pypaimon")))


if __name__ == "__main__":
    main()
