"""Lint and types, one line each; what a tool complains of is printed only when it does.

python tools/check.py lint types
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "tools", "benchmarks", "examples")


def main(arguments: list[str]) -> int:
    """Run the named groups, or all of them; 1 if any tool complains."""
    unknown = [name for name in arguments if name not in commands()]
    if unknown:
        print(f"{unknown[0]!r} is not a group of checks\n  hint  use {' or '.join(commands())}", file=sys.stderr)
        return 2
    chosen = [command for name in arguments or commands() for command in commands()[name]]
    failed = [command for command in chosen if not passes(*command)]
    return 1 if failed else 0


def commands() -> dict[str, list[list[str]]]:
    """What each group runs; a folder that is not there yet, or has no Python, is left out."""
    folders = [name for name in FOLDERS if any((ROOT / name).rglob("*.py"))]
    return {
        "lint": [["ruff", "check", "--quiet", *folders], ["ruff", "format", "--check", *folders]],
        "types": [["mypy"], ["mypy", "--config-file", "tests/mypy.ini"]],
    }


def test_folders() -> list[str]:
    """Folders from which tests import by plain names, as pytest lets them; a package among them is not one."""
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")}
    return sorted(str(folder) for folder in folders if not (folder / "__init__.py").exists())


def passes(*command: str) -> bool:
    """Whether the tool finds nothing, said in one line."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": ":".join(test_folders())},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    name = " ".join(word for word in command[:2] if not word.startswith("-"))
    name += " tests" if "tests/mypy.ini" in command else ""
    verdict = "ok" if done.returncode == 0 else "FAILED"
    print(f"{name:<14}{verdict:<8}{time.perf_counter() - started:5.1f} s", flush=True)
    if done.returncode:
        print(done.stdout, end="", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
