"""On a standalone cluster with two workers: jobs by spark-submit, and what executors need for them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.fs as fs
import pyspark
import pytest
from standalone import HOST, Cluster, answers, cluster_of, end, free_port, started, wait_for

import lakeproof

pytestmark = [pytest.mark.peer, pytest.mark.spark]
JOB, ROWS_JOB = (Path(__file__).with_name(name) for name in ("walk_job.py", "rows_job.py"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster_of(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def test_the_walk_through_needs_no_python_on_the_executors(cluster: Cluster, tmp_path: Path) -> None:
    """Executors read and write Parquet by themselves: they are told a Python that is not there."""
    conf = {"spark.pyspark.python": "/no/such/python"}
    done = cluster.submitted(JOB, str(tmp_path), str(tmp_path / "lake"), str(tmp_path / "out"), conf=conf)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"walked on 2 executors of {cluster.master}" in done.stdout
    assert len(list((tmp_path / "out" / "data").rglob("*.parquet"))) == 100


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python with every library, but without this package: what is installed for editing is not seen like this."""
    script = tmp_path / "bare_python"
    libraries = Path(pyspark.__file__).parent.parent
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{libraries}:$PYTHONPATH" exec "{base}" "$@"\n')
    script.chmod(0o755)
    return script


def test_row_level_commands_need_no_python_on_the_executors(cluster: Cluster, tmp_path: Path) -> None:
    conf = {"spark.pyspark.python": "/no/such/python"}
    done = cluster.submitted(ROWS_JOB, str(tmp_path), "rows", conf=conf)
    assert (done.returncode, done.stdout) == (0, "rows done\n"), done.stdout + done.stderr


def test_arrays_and_buckets_of_strings_need_libraries_but_not_the_package(
    cluster: Cluster, tmp_path: Path, bare: Path
) -> None:
    done = cluster.submitted(ROWS_JOB, str(tmp_path), "workers", conf={"spark.pyspark.python": str(bare)})
    assert (done.returncode, done.stdout) == (0, "workers done\n"), done.stdout + done.stderr


def test_workers_without_the_package_get_it_as_a_zip(cluster: Cluster, tmp_path: Path, bare: Path) -> None:
    """A search runs our Python on the executors: the package comes along, the libraries that it needs must be there."""
    package = shutil.make_archive(str(tmp_path / "lakeproof"), "zip", Path(lakeproof.__file__).parents[1], "lakeproof")
    without = searched(cluster, tmp_path / "without", PYSPARK_PYTHON=str(bare))
    assert (without["verdict"], without["cut_by"]) == ("unknown", "a failed Spark job")
    assert "No module named 'lakeproof'" in without["notes"][0]
    brought = {"PYSPARK_PYTHON": str(bare), "PYSPARK_SUBMIT_ARGS": f"--py-files {package} pyspark-shell"}
    found = searched(cluster, tmp_path / "with", **brought)
    assert (found["verdict"], found["states"]) == ("holds", 56)


def searched(cluster: Cluster, folder: Path, **environment: str) -> dict[str, Any]:
    """The verdict of a small search on the cluster."""
    small = {"num-writers": 3, "max-write-ops": 2, "max-compactions": 1, "num-keys": 2}
    settings = [word for name, value in small.items() for word in ("--set", f"{name}={value}")]
    where = ["--engine", "spark", "--master", cluster.master, "--checkpoint", str(folder), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "lakeproof.cli.main", "check", "iceberg", *settings, *where],
        env={**os.environ, "SPARK_LOCAL_IP": HOST, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    verdict: dict[str, Any] = json.loads(done.stdout)
    return verdict


# Hadoop's S3 file system for this Spark. Its bundle of all of Amazon's clients is 640 MB; these parts do.
SDK = "2.29.52"
PACKAGES = ["org.apache.hadoop:hadoop-aws:3.4.2"]
PACKAGES += [f"software.amazon.awssdk:{part}:{SDK}" for part in ("s3", "s3-transfer-manager", "sts")]
LEFT_OUT = "software.amazon.awssdk:bundle,org.wildfly.openssl:wildfly-openssl,org.apache.hadoop:hadoop-common"
KEY, SECRET, REGION, BUCKET = "key", "secret", "us-east-1", "lake"


@pytest.fixture
def endpoint() -> Iterator[str]:
    """An S3 endpoint of this machine's own, with one bucket."""
    beside = Path(sys.prefix).with_name(f"{Path(sys.prefix).name}-peers") / "bin" / "moto_server"
    server = str(beside) if beside.exists() else shutil.which("moto_server")
    if server is None:
        pytest.skip("moto is not installed: `make check-all` does so")
    port = free_port()
    running = started(server, "-H", HOST, "-p", str(port))
    try:
        wait_for(lambda: answers(port), running)
        files_at(f"http://{HOST}:{port}").create_dir(BUCKET)
        yield f"http://{HOST}:{port}"
    finally:
        end(running)


def files_at(endpoint: str) -> fs.S3FileSystem:
    return fs.S3FileSystem(
        access_key=KEY, secret_key=SECRET, region=REGION, endpoint_override=endpoint, allow_bucket_creation=True
    )


def test_the_walk_through_on_an_s3_endpoint(cluster: Cluster, endpoint: str, tmp_path: Path) -> None:
    """Metadata go through PyIceberg's FileIO, rows through Hadoop's: each side has its own settings."""
    conf = {
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": REGION,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": KEY,
        "spark.hadoop.fs.s3a.secret.key": SECRET,
    }
    ours = {"s3.endpoint": endpoint, "s3.region": REGION, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET}
    places = (str(tmp_path), f"s3://{BUCKET}/warehouse", f"s3://{BUCKET}/out")
    packages = ("--packages", ",".join(PACKAGES), "--exclude-packages", LEFT_OUT)
    properties = [f"{name}={value}" for name, value in ours.items()]
    done = cluster.submitted(JOB, *places, *properties, conf=conf, options=packages)
    if "unresolved dependencies" in done.stderr or "UnknownHostException" in done.stderr:
        pytest.skip("the jars of hadoop-aws cannot be fetched")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"walked on 2 executors of {cluster.master}" in done.stdout
    found = files_at(endpoint).get_file_info(fs.FileSelector(f"{BUCKET}/out/data", recursive=True))
    assert sum(one.path.endswith(".parquet") for one in found) == 100
