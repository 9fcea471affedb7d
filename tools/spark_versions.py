"""Run the Spark tests on every version of Spark that Lakeproof allows, each installed into a folder of its own.

The version of the lock file is the one that `make test` runs on. The others are laid over it: their folder comes first
on PYTHONPATH, so that everything else is the same. A version that cannot be installed is skipped with the reason.

python tools/spark_versions.py                          the demo and the tests on all of them
python tools/spark_versions.py 4.3.0 -k time_travel     some tests on one of them
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("4.2.1", "4.3.0")
TESTS = ("-m", "spark and not slow and not peer", "tests/spark")
SECONDS_TO_INSTALL = 900


def main(arguments: list[str]) -> int:
    """1 if anything fails on some version."""
    chosen = [version for version in VERSIONS if version in arguments] or list(VERSIONS)
    tests = [argument for argument in arguments if argument not in VERSIONS]
    return max(run_on(version, tests) for version in chosen)


def run_on(version: str, tests: list[str]) -> int:
    """The demo and the tests on one version; 0 also where it cannot be installed."""
    folder = folder_of(version)
    reason = installed(folder, version)
    if reason:
        print(f"Spark {version:<8}SKIPPED  {reason}", flush=True)
        return 0
    environment = laid_over(folder)
    commands = {"tests": [sys.executable, "-m", "pytest", "-q", *TESTS, *tests]}
    if not tests:
        commands["demo"] = [sys.executable, "-m", "lakeproof.cli.main", "demo"]
    codes = [passes(version, what, command, environment) for what, command in commands.items()]
    return 0 if all(codes) else 1


def folder_of(version: str) -> Path:
    """Where a version lies: .venv-spark42 for 4.2.1."""
    return ROOT / f".venv-spark{''.join(version.split('.')[:2])}"


def installed(folder: Path, version: str) -> str:
    """Why the version is not in the folder; empty: it is."""
    if (folder / f"pyspark-{version}.dist-info").is_dir():
        return ""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        subprocess.run(
            [*command, "--upgrade", "--target", str(folder), f"pyspark=={version}"],
            check=True,
            capture_output=True,
            text=True,
            timeout=SECONDS_TO_INSTALL,
        )
    except subprocess.CalledProcessError as error:
        return (str(error.stderr).strip().splitlines() or ["pip failed without a word"])[-1]
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return ""


def laid_over(folder: Path) -> dict[str, str]:
    """The environment in which `import pyspark` finds that folder first."""
    paths = [str(folder), str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def passes(version: str, what: str, command: list[str], environment: dict[str, str]) -> bool:
    """Whether the command ends well, told in one line behind its own output."""
    started = time.perf_counter()
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    verdict = "ok" if code == 0 else f"FAILED with code {code}"
    print(f"Spark {version:<8}{what:<7}{verdict}  {time.perf_counter() - started:.0f} s", flush=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
