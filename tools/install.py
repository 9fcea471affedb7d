"""Build the virtual environment from the lock files: with uv where it is on PATH, else with venv and pip.

Needs only the standard library, and says so in words when the Python that runs it is too old.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = (3, 11)
OLDEST_JAVA = 17
JAVA_LOCK = "requirements-java.lock"


def main(arguments: list[str]) -> int:
    """Install into the folder that is named on the command line; with a lock file behind it, that file and no more."""
    if sys.version_info < OLDEST_PYTHON:
        found = ".".join(map(str, sys.version_info[:2]))
        return fail(f"Lakeproof needs Python 3.11 or newer; this is {found}.", "make install PYTHON=python3.11")
    if len(arguments) not in (1, 2):
        return fail("Name the folder of the virtual environment.", "python tools/install.py .venv")
    folder = Path(arguments[0]).absolute()
    try:
        make_environment(folder)
        if len(arguments) == 2:
            install(folder, arguments[1], "--require-hashes", "-r", arguments[1])
            return 0
        install(folder, "the locked packages", "--require-hashes", "-r", "requirements.lock")
        install_java(folder)
        install(folder, "lakeproof itself", "--no-deps", "--no-build-isolation", "-e", ".")
    except subprocess.CalledProcessError as error:
        return fail(f"{Path(error.cmd[0]).name} ended with code {error.returncode}.", "read its last lines above")
    return 0


def make_environment(folder: Path) -> None:
    """The folder holds a Python that runs; a broken one is built again."""
    if runs(python_of(folder)):
        say(f"environment   {folder.name} is there")
        return
    say(f"environment   {folder.name} with Python {'.'.join(map(str, sys.version_info[:3]))}")
    if uv():
        subprocess.run(
            [uv(), "venv", "--quiet", "--seed", "--clear", "--python", sys.executable, str(folder)], check=True
        )
    else:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)


def install(folder: Path, what: str, *arguments: str) -> None:
    """Install quietly; what is there already stays."""
    say(f"install       {what}")
    if uv():
        command = [uv(), "pip", "install", "--quiet", "--python", str(python_of(folder))]
    else:
        command = [str(python_of(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *arguments], cwd=ROOT, check=True)


def install_java(folder: Path) -> None:
    """Bring a Java runtime as a package, if the machine has none that Spark can use."""
    found = java_version()
    if found is not None and found >= OLDEST_JAVA:
        say(f"java          version {found} of this machine")
    else:
        install(folder, f"Java as a package (Spark needs {OLDEST_JAVA} or newer)", "--require-hashes", "-r", JAVA_LOCK)


def java_version() -> int | None:
    """The newest Java that JAVA_HOME or PATH leads to; `None`: there is none."""
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home) / "bin" / "java") if home else None, shutil.which("java")]
    found = [version_of(java) for java in candidates if java]
    return max((version for version in found if version is not None), default=None)


def version_of(java: str) -> int | None:
    """The major version of a Java; `None`: it does not start."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return major_version(said.stderr + said.stdout)


def major_version(text: str) -> int | None:
    """The major version in what `java -version` says.

    >>> major_version('openjdk version "17.0.15" 2025-04-15'), major_version('java version "1.8.0_401"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def uv() -> str:
    """The path of uv; empty: it is not on PATH."""
    return shutil.which("uv") or ""


def python_of(folder: Path) -> Path:
    """The Python of an environment."""
    return folder / "bin" / "python"


def runs(python: Path) -> bool:
    """Whether that Python starts and is new enough."""
    test = f"import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    try:
        return subprocess.run([str(python), "-c", test], capture_output=True, check=False, timeout=60).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def say(line: str) -> None:
    """One line of progress."""
    print(line, flush=True)


def fail(sentence: str, hint: str) -> int:
    """Say what is wrong and what to do."""
    print(f"{sentence}\n  hint  {hint}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
