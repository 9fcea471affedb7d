"""Spark gets a Java, whatever the machine has."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lakeproof.errors import InvalidInput
from lakeproof.spark.jvm import java
from lakeproof.spark.jvm.paths import for_spark, from_spark


def fake_java(folder: Path, version: str) -> Path:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}"\' >&2; else echo "$@"; fi\n'
    )
    command.chmod(0o755)
    return command


@pytest.fixture(autouse=True)
def nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java.shutil, "which", lambda _: None)


@pytest.mark.parametrize(("said", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_392", 8), ("24-ea", 24)])
def test_versions_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, major: int) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", said).parent.parent))
    monkeypatch.setattr(java, "_packaged", lambda: None)
    if major >= 17:
        assert java.find_java()[1:] == (major, True)
    else:
        with pytest.raises(InvalidInput, match="Spark needs Java 17"):
            java.find_java()


def test_the_wrapper_drops_the_one_module_and_passes_the_rest(tmp_path: Path) -> None:
    home = java.wrap_runtime(fake_java(tmp_path / "jdk", "21"))
    words = [str(home / "bin" / "java"), "-cp", "a b", "--add-modules=jdk.incubator.vector", "Main"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "-cp a b Main"


def test_an_old_java_gives_way_to_the_packaged_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2").parent.parent))
    packaged = java.Java(str(tmp_path / "packaged"), 21, own=False)
    monkeypatch.setattr(java, "_packaged", lambda: packaged)
    assert java.use_java() == packaged
    assert os.environ["JAVA_HOME"] == packaged.home


@pytest.mark.parametrize(
    ("printed", "location", "kept"),
    [
        ("file:/x/a%20b/p=a%253Ab/f.parquet", "file:///x", "file:///x/a b/p=a%3Ab/f.parquet"),
        ("file:///x/f.parquet", "/x", "/x/f.parquet"),
        ("s3a://bucket/x/f.parquet", "s3://bucket/x", "s3://bucket/x/f.parquet"),
        ("hdfs://host/x/f.parquet", "hdfs://host/x", "hdfs://host/x/f.parquet"),
    ],
)
def test_a_path_that_spark_prints_becomes_the_manifest_s_own(printed: str, location: str, kept: str) -> None:
    assert from_spark(printed, location) == kept


def test_spark_opens_s3_under_its_own_scheme() -> None:
    assert for_spark("s3://bucket/f") == "s3a://bucket/f"
    assert for_spark("file:///f") == "file:///f"
