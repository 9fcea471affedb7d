"""Run the Spark tests as two processes side by side, each with a session of its own; the worse exit code counts.

A process can have one Spark session, and most of a test is spent waiting for it: two of them keep two cores busy.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APART = ("tests/spark/row_level", "tests/spark/streams", "tests/iceberg_sql")
"""About half of the time."""


def main(arguments: list[str]) -> int:
    """Show one half as it goes and the other when it is done."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    with tempfile.TemporaryFile(mode="w+") as kept:
        other = subprocess.Popen([*command, *APART], cwd=ROOT, stdout=kept, stderr=subprocess.STDOUT)
        try:
            code = subprocess.run(
                [*command, *(f"--ignore={folder}" for folder in APART)], cwd=ROOT, check=False
            ).returncode
            code = worse(code, other.wait())
        finally:
            other.kill()
            other.wait()
        kept.seek(0)
        print(kept.read())
    return code


def worse(one: int, other: int) -> int:
    """The code of the half that failed; a half that was killed has a negative one."""
    return one or other


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
