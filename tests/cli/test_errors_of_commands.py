"""Whatever goes wrong in a command leaves it as one sentence with an exit code, a full disk and a defect too."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from lakeproof.cli.main import main
from lakeproof.cli.output import TRACEBACK, run_guarded
from lakeproof.errors import FULL_DISK, Unavailable
from lakeproof.iceberg.failures import translate_errors


def raising(error: Exception) -> int:
    def run() -> int:
        raise error

    return run_guarded(run, as_json=True)


def test_a_full_disk_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(OSError(errno.ENOSPC, "No space left on device", "page.html")) == 3
    told = json.loads(capsys.readouterr().out)["error"]
    assert (told["message"], told["place"]) == ("the disk is full", "page.html")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_under_a_table_says_so(code: int) -> None:
    with pytest.raises(Unavailable, match=FULL_DISK), translate_errors("table t"):
        raise OSError(code, "Error writing bytes to file")


def test_standard_output_on_a_full_disk_is_heard_of() -> None:
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-m", "lakeproof.cli.main", "jobs", "from-dbt", "tests/jobs/data/dbt_manifest.json"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode != 0


def test_what_nobody_foresaw_is_a_sentence_that_asks_for_a_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert raising(KeyError("x")) == 3
    told = json.loads(capsys.readouterr().out)["error"]
    assert told["message"].startswith("Lakeproof failed in a way that nobody foresaw: KeyError")
    monkeypatch.setenv(TRACEBACK, "1")
    assert raising(KeyError("x")) == 3
    shown = capsys.readouterr()
    assert json.loads(shown.out)["error"] == told
    assert "in run\n    raise error\nKeyError: 'x'" in shown.err


@pytest.mark.parametrize(
    ("words", "name", "content"),
    [
        (("check",), "jobs.sql", b"\xff\xfe select"),
        (("check", "iceberg", "--policy"), "p.toml", b"\xff\xfe"),
        (("check",), "case.toml", b"\xff\xfe"),
        (("scenario",), "s.txt", b"\xff\xfe"),
        (("explore",), "trace.json", b"\xff\xfe"),
        (("jobs", "from-dbt"), "manifest.json", b"[" * 100_000),
        (("explore",), "trace.json", b"[" * 100_000),
        (("check",), "jobs.sql", b"-- job: a\ndelete from t where " + b"(" * 3000),
    ],
)
def test_a_file_that_is_no_text_is_bad_input(
    words: tuple[str, ...], name: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert main([*words, str(path), *(("--json",) if words[0] != "explore" else ())]) == 2
    told = capsys.readouterr()
    assert "Traceback" not in told.out + told.err
    assert "foresaw" not in told.out + told.err
