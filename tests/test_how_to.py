"""The SQL of the how-to pages runs on a real Spark as it stands there, and what pages list is what the code has."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from test_docs import ROOT, blocks_of

HOW_TO = ROOT / "docs" / "how-to"
SNAPSHOT, INSTANT = "5781947118336215154", "2026-01-31 12:00:00"
"""What a page writes for the first snapshot of its last table, and for the moment after it."""


def sql_of(page: Path) -> list[str]:
    """The SQL blocks of a page that are to be run; jobs files are the checker's."""
    found = blocks_of(page, page.read_text(encoding="utf-8"))
    return [one.text for one in found if one.kind == "sql" and not one.only_compiled and "-- job:" not in one.text]


PAGES = [page for page in sorted(HOW_TO.glob("*.md")) if sql_of(page)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    from lakeproof.spark.jvm.session import build_session
    from lakeproof.spark.lake import connect

    folder = tmp_path_factory.mktemp("pages")
    conf = {"spark.sql.shuffle.partitions": "2"}
    session = build_session(str(folder), master="local[2]", quick=True, conf=conf)
    yield connect(session, catalog=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    session.stop()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_sql_of_a_page_runs(page: Path, lake: object) -> None:
    from lakeproof.spark.lake import Lake
    from lakeproof.sql import split

    assert isinstance(lake, Lake)
    made: list[str] = []
    for piece in (piece for text in sql_of(page) for piece in split(text)):
        text = piece.text
        if INSTANT in text or SNAPSHOT in text:
            first = lake.table(made[-1]).snapshots()[0]
            zone = ZoneInfo(str(lake.spark.conf.get("spark.sql.session.timeZone")))
            moment = datetime.fromtimestamp(first.timestamp_ms / 1000 + 1, zone).strftime("%Y-%m-%d %H:%M:%S")
            text = text.replace(SNAPSHOT, str(first.snapshot_id)).replace(INSTANT, moment)
        rows = lake.collect(lake.sql(text))
        if re.match(r"select|as of|explain|describe|show", text, re.IGNORECASE):
            assert rows, text
        created = re.match(r"create table (\w+)", text)
        made += [created[1]] if created else []
        if text.startswith("insert") and len(made) == 1:
            time.sleep(1)  # a second between snapshots: pages name instants to the second
    for name in made:
        lake.sql(f"drop table {name} purge")


def test_the_audit_page_lists_every_kind_of_finding() -> None:
    from lakeproof.audit.kinds import KINDS

    text = (HOW_TO / "audit-a-table.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.M)) == {
        name: kind.words for name, kind in KINDS.items()
    }


@pytest.mark.slow
def test_the_matrix_and_the_reasons_are_what_the_model_says(tmp_path: Path) -> None:
    pages = [ROOT / "docs" / "reference" / "matrix.md", ROOT / "docs" / "explanation" / "checks.md"]
    copies = [tmp_path / page.name for page in pages]
    for page, copy in zip(pages, copies, strict=True):
        copy.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "tools.computed_pages", *map(str, copies)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)
    for page, copy in zip(pages, copies, strict=True):
        assert "✓" in copy.read_text() or "Without it" in copy.read_text()
        assert copy.read_text(encoding="utf-8") == page.read_text(encoding="utf-8"), "make docs"
