"""No error prints a password or a token, in whatever form it was given, not even by its cause."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from lakeproof import private_folders
from lakeproof.errors import CommitUnknown, InvalidInput, LakeproofError, hide_secrets
from lakeproof.iceberg.failures import swapping, translate_errors
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
]


@pytest.mark.parametrize("uri", URIS)
def test_no_form_of_a_uri_prints_its_secret(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert HIDDEN not in hide_secrets(uri)
    with pytest.raises(LakeproofError) as caught:
        open_catalog(uri)
    assert HIDDEN not in str(caught.value)
    assert HIDDEN not in repr(caught.value)
    assert HIDDEN not in "".join(traceback.format_exception(caught.value, limit=0))
    assert HIDDEN not in "".join(capsys.readouterr())


@pytest.mark.parametrize("uri", URIS[:2] + URIS[7:8])
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
        ("Authorization: Bearer s3cr3ts3cr3t", "Authorization: Bearer …"),
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
