"""No error prints a password or a token, in whatever form it was given, not even by its cause."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from lakeproof import private_folders
from lakeproof.cli.output import run_guarded
from lakeproof.cli.prompt import kept_history
from lakeproof.errors import CommitUnknown, InvalidInput, LakeproofError, hide_secrets, remember_secrets
from lakeproof.iceberg.failures import swapping, translate_errors
from lakeproof.iceberg.reading.manifest_cache import default_folder
from lakeproof.iceberg.tables.catalogs import open_catalog

HIDDEN = "s3cr3t"
URIS = [
    "postgresql://bob:s3cr3t@localhost:1/db",
    "postgresql://localhost:1/db?user=bob&password=s3cr3t",
    "postgresql://:s3cr3t@localhost:1/db",
    "postgresql://bob:a@s3cr3t@localhost:1/db",
    "postgresql://bob:a/s3cr3t@localhost:1/db",
    "postgresql+psycopg://bob:s3cr3t?x@localhost:1/db",
    "postgresql+psycopg://bob:p%40s3cr3t@[::1]:1/db?sslpassword=s3cr3t",
    "http://localhost:1/?token=s3cr3t",
    "http://localhost:1/v1?a=b&access_token=s3cr3t#x",
    "https://s3cr3t@localhost:1/",
    "http://bob:s3cr3t@localhost:1/catalog",
    "mysql://bob:s3cr3t@localhost/db",
    "host=localhost user=bob password=s3cr3t",
    "host=localhost password='a s3cr3t'",
    "host=localhost sslpassword=s3cr3t",
    "postgresql://bob%3As3cr3t@localhost:1/db",
    "postgresql://localhost:1/db?pass%77ord=s3cr3t",
    "postgresql://localhost:1/db?user=bob&PASS=s3cr3t",
    "http://localhost:1/?sv=1&sig=s3cr3t",
    "http://localhost:1/#access_token=s3cr3t",
    "https://s3cr3t:x-oauth-basic@localhost:1/",
    "https://s3cr3t:@localhost:1/",
    "ftp://h/?next=postgresql%3A%2F%2Fbob%3As3cr3t%40host%2Fdb",
    "s3a://AKIA:a/s3cr3t@bucket/k",
]
ODD_URIS = [
    "postgresql://bob:it's-s3cr3t@localhost:1/db",
    "postgresql://bob:a s3cr3t@localhost:1/db",
    "postgresql:/bob:s3cr3t@localhost/db",
    "postgresql:bob:s3cr3t@localhost/db",
    "bob:s3cr3t@localhost/db",
    "postgresql://localhost:1/db?password=it's-s3cr3t",
    "postgresql://bob@localhost:s3cr3t/db?password=s3cr3t",
]
"""Forms that no pattern could tell from other text: what is secret in them is known since they were given."""


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test gave shall not help another."""
    monkeypatch.setattr("lakeproof.errors._given", {})


@pytest.mark.parametrize("uri", URIS)
def test_a_secret_is_told_by_the_form_of_its_uri(uri: str) -> None:
    for text in (uri, f"'{uri}'", f"no answer from {uri}, and so on", f'{{"uri": "{uri}"}}', repr(OSError(uri))):
        assert HIDDEN not in hide_secrets(text), text


@pytest.mark.parametrize("uri", URIS + ODD_URIS)
def test_no_form_of_a_uri_prints_its_secret(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LakeproofError) as caught:
        open_catalog(uri)
    assert HIDDEN not in str(caught.value)
    assert HIDDEN not in repr(caught.value)
    assert HIDDEN not in "".join(traceback.format_exception(caught.value, limit=0))
    assert HIDDEN not in "".join(capsys.readouterr())


@pytest.mark.parametrize("uri", [URIS[0], URIS[7], ODD_URIS[0]])
def test_the_command_line_prints_none(uri: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lakeproof.cli.main", "audit", "t", "--catalog", uri]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode != 0
    assert HIDDEN not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{'s3.secret-access-key': 's3cr3t', 'a': 'b'}", "{'s3.secret-access-key': '…', 'a': 'b'}"),
        ("tblproperties ('adls.account-key' = 's3cr3t')", "tblproperties ('adls.account-key' = '…')"),
        ('{"token": "s3cr3t"}', '{"token": "…"}'),
        ("{'password': \"it's s3cr3t\"}", "{'password': \"…\"}"),
        ("connect(token='s3cr3t', a=1)", "connect(token=…, a=1)"),
        ("[('api_key', 's3cr3t')]", "[('api_key', '…')]"),
        ("{'header.Authorization': 'token s3cr3t'}", "{'header.Authorization': '…'}"),
        ("AccountKey=s3cr3t;EndpointSuffix=x", "AccountKey=…;EndpointSuffix=x"),
        ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJib2IifQ.s3cr3t", "got …"),
        ("-----BEGIN RSA PRIVATE KEY-----\ns3cr3t\n-----END", "-----BEGIN RSA PRIVATE KEY-----…-----END"),
        ("password: s3cr3t", "password: …"),
        ("Authorization: Bearer s3cr3ts3cr3t", "Authorization: Bearer …"),
        ("hdfs://nn:8020/wh/p=a%40b/f.parquet", "hdfs://nn:8020/wh/p=a%40b/f.parquet"),
        ("file:///wh/t/data/ts=00%3A00%3A00/a@b.parquet", "file:///wh/t/data/ts=00%3A00%3A00/a@b.parquet"),
        ("file:///wh/t/data/token=ETH/a.parquet", "file:///wh/t/data/token=ETH/a.parquet"),
        ("data/day=1/api_key=7/a.parquet is gone", "data/day=1/api_key=7/a.parquet is gone"),
        ("there is no column key; there is code, pass, key", "there is no column key; there is code, pass, key"),
        ("postgresql://bob@host/db", "postgresql://bob@host/db"),
        ("s3://bucket/a@b/c:d", "s3://bucket/a@b/c:d"),
        ("select token = 'x' from t where password = 'y'", "select token = 'x' from t where password = 'y'"),
        ("a token was expected: `)`", "a token was expected: `)`"),
    ],
)
def test_secrets_are_left_out_and_nothing_else(text: str, shown: str) -> None:
    assert hide_secrets(text) == shown
    assert str(InvalidInput(text)) == str(CommitUnknown(text)) == shown
    assert shown in str(InvalidInput("x", place=text, hint=text))


@pytest.mark.parametrize("telling", [translate_errors, swapping])
def test_a_cause_that_holds_a_secret_stays_behind(telling: object) -> None:
    cause = OSError("cannot reach http://h/?token=s3cr3t")
    if telling is swapping:
        from requests.exceptions import ConnectionError as Broken

        cause = Broken("no http://h/?token=s3cr3t")
    with pytest.raises(LakeproofError) as caught, telling("here"):  # type: ignore[operator]
        raise cause
    assert HIDDEN not in "".join(traceback.format_exception(caught.value))


def test_what_was_given_is_hidden_in_whatever_text() -> None:
    remember_secrets("postgresql://bob:hunter%2F22@h/db", {"s3.secret-access-key": "AbC+dEf=", "uri": "a-plain-name"})
    text = "FATAL: hunter/22 is wrong; tried hunter%2F22, AbC+dEf= and AbC%2BdEf%3D for bob on a-plain-name"
    assert hide_secrets(text) == "FATAL: … is wrong; tried …, … and … for bob on a-plain-name"


def test_a_plain_word_as_a_password_does_not_blot_sentences() -> None:
    remember_secrets("postgresql://postgres:default@h/db", {})
    remember_secrets("http://localhost:8181/?mail=a@b", {})
    text = "there is no table default.people at localhost"
    assert hide_secrets(text) == text


def test_the_traceback_that_was_asked_for_prints_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> int:
        try:
            raise KeyError("http://h/?token=s3cr3t")
        except KeyError as cause:
            raise AssertionError("postgresql://bob:s3cr3t@h/db") from cause

    monkeypatch.setenv("LAKEPROOF_TRACEBACK", "1")
    assert run_guarded(fails, as_json=False) == 3
    told = capsys.readouterr().err
    assert "in fails" in told
    assert "KeyError" in told
    assert HIDDEN not in told


def test_the_history_of_the_prompt_is_private_and_holds_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "lakeproof" / "sql-history"
    file.parent.mkdir()
    file.touch(mode=0o644)
    kept_history().append_string("create table t (a int) tblproperties ('s3.secret-access-key' = 's3cr3t');")
    assert HIDDEN not in file.read_text()
    assert "create table t" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_cause_without_one_is_kept() -> None:
    with pytest.raises(LakeproofError) as caught, translate_errors("here"):
        raise OSError("the disk")
    assert isinstance(caught.value.__cause__, OSError)


def test_a_folder_that_somebody_else_may_have_made_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    shared = tmp_path / f"lakeproof-{os.getuid()}"
    home, first, new = private_folders.private_folders()
    assert home.name == "lakeproof"
    assert first == shared
    assert stat.S_IMODE(shared.stat().st_mode) == 0o700
    shared.chmod(0o777)
    assert shared not in list(private_folders.private_folders())
    shared.rmdir()
    (tmp_path / "theirs").mkdir()
    shared.symlink_to(tmp_path / "theirs")
    assert shared not in list(private_folders.private_folders())
    assert stat.S_IMODE(new.stat().st_mode) == 0o700


def test_the_users_cache_is_made_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new" / "cache"))
    folder = private_folders.private_cache()
    assert folder == tmp_path / "new" / "cache" / "lakeproof"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o775)  # what older versions left where a group is a user's own
    assert private_folders.private_cache() == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def _of_another(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    real = os.getuid()
    monkeypatch.setattr("os.getuid", lambda: real + 1)


def _for_all(_monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def _below_one_for_all(_monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    folder.parent.chmod(0o777)


def _a_link_to_one_for_all(_monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    theirs = folder.parent / "theirs"
    theirs.mkdir()
    theirs.chmod(0o777)
    folder.symlink_to(theirs)


def _a_file(_monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    folder.touch()


@pytest.mark.parametrize("planted", [_of_another, _for_all, _below_one_for_all, _a_link_to_one_for_all, _a_file])
def test_a_cache_that_somebody_else_could_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: Callable[[pytest.MonkeyPatch, Path], None]
) -> None:
    """Compiled code and start scripts lie there, and decoded manifests: what stands in them is believed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("LAKEPROOF_CACHE", raising=False)
    planted(monkeypatch, tmp_path / "lakeproof")
    assert private_folders.private_cache() is None
    assert default_folder() is None
    folders = private_folders.private_folders()
    assert tmp_path / "lakeproof" not in [next(folders), *folders]


def test_one_below_a_folder_that_keeps_entries_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o1777)  # as a temporary folder is
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert private_folders.private_cache() == tmp_path / "lakeproof"
