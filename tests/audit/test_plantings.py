"""Every planted fault is found, with its kind, its severity and an advice that cannot destroy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from damaging import reread
from lakehouse import Lakehouse, PartitionBy, insert, people, write
from plantings import PLANTINGS, Planting
from test_audit import good

from lakeproof.audit import Audit, Depth, audit_raw
from lakeproof.audit.kinds import KINDS, SEVERITIES
from lakeproof.commit import POLICIES
from lakeproof.filters import ALWAYS
from lakeproof.iceberg.committing.whole_file_commits import overwrite_where
from lakeproof.iceberg.inspecting.opening import open_loaded
from lakeproof.iceberg.pyiceberg_names import Table

DEPTHS = {"": Depth(), "deep": Depth(footers=True), "checksums": Depth(pages=True)}
REMOVERS = re.compile(r"orphan|expire|drop|purge|delete the|remove the file", re.IGNORECASE)


@pytest.fixture
def lake(tmp_path: Path) -> Lakehouse:
    return Lakehouse(tmp_path)


def plain(lake: Lakehouse) -> Table:
    return good(lake)


def partitioned(lake: Lakehouse) -> Table:
    table = insert(lake.create(by=(PartitionBy("id", "truncate[10]"),)), people(1, 2, 31))
    return insert(table, people(11, 12, 45))


def overwritten(lake: Lakehouse) -> Table:
    table = insert(lake.create(), people(1, 2, 3))
    return overwrite_where(table, ALWAYS, write(table, people(7))).table


BASES = {"plain": plain, "partitioned": partitioned, "overwritten": overwritten}


def looked_at(table: Table, depth: Depth) -> Audit:
    return audit_raw(open_loaded(table, "t"), POLICIES["lakeproof"], depth=depth)


@pytest.mark.parametrize("planting", [pytest.param(one, id=one.name) for one in PLANTINGS])
def test_a_planted_fault_is_found(lake: Lakehouse, planting: Planting) -> None:
    table = BASES[planting.base](lake)
    depth = DEPTHS[planting.depth]
    assert looked_at(table, DEPTHS["checksums"]).findings == ()  # and every cache is warm
    planting.plant(table)
    found = looked_at(table, depth)
    assert {one.kind for one in found.findings} == set(planting.kinds), found
    worst = [one for one in found.findings if one.kind == planting.kinds[0]]
    assert planting.severity in {one.severity for one in worst}, worst
    for one in found.findings:
        assert one.because
        assert one.advice
        assert one.severity in SEVERITIES
    if planting.kinds != ("unreferenced_file",):
        told = [one.advice for one in found.findings] + list(found.notes)
        assert [text for text in told if REMOVERS.search(text)] == []


def test_there_are_sixty_and_they_are_of_many_kinds() -> None:
    assert len({one.name for one in PLANTINGS}) == len(PLANTINGS) >= 60
    assert {kind for one in PLANTINGS for kind in one.kinds} <= set(KINDS)


def test_the_good_tables_are_good(lake: Lakehouse) -> None:
    for number, make in enumerate(BASES.values()):
        folder = lake.folder / str(number)
        folder.mkdir()
        assert looked_at(reread(make(Lakehouse(folder))), DEPTHS["checksums"]).findings == ()
