"""Findings are rows like any others: joined with the table's own views."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakeproof.audit.findings import COLUMNS
from lakeproof.audit.joinable import findings
from lakeproof.errors import InvalidInput
from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import Lake, connect

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    session = build_session(str(tmp_path), master="local[1]", quick=True)
    yield connect(session, catalog=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    session.stop()


def test_findings_are_joined_with_the_files_and_snapshots_that_they_name(lake: Lake) -> None:
    lake.sql("create table people (id int) using iceberg; insert into people values (1); insert into people values (2)")
    assert findings(lake, "people").collect() == []
    assert findings(lake, "people").columns == list(COLUMNS)

    gone = lake.table("people").plan("id = 1").files[0]
    Path(gone.path.removeprefix("file://")).unlink()
    findings(lake, "people").createOrReplaceTempView("found")
    joined = lake.sql(
        "select f.kind, e.record_count, s.operation from found f "
        "join `people$files` e on array_contains(f.files, e.file_path) "
        "join (select id, 'head' as operation from `people$snapshots`) s on array_contains(f.snapshots, s.id)"
    )
    assert [tuple(row) for row in joined.collect()] == [("missing_file", 1, "head")] * 2  # both snapshots hold it
    deep = findings(lake, "people", deep=True, checksums=True)
    assert [row.kind for row in deep.collect()] == ["missing_file"]

    kept = Path(lake.table("people").plan("id = 2").files[0].path.removeprefix("file://"))
    kept.write_bytes(b"x" * kept.stat().st_size)
    deep = findings(lake, "people", deep=True)  # Spark's workers open the files
    assert [row.kind for row in deep.collect()] == ["missing_file", "unreadable_file"]
    with pytest.raises(InvalidInput, match="there is no table"):
        findings(lake, "nobody")
    with pytest.raises(InvalidInput, match="nobody"):
        findings(lake, "people", policy="nobody")
