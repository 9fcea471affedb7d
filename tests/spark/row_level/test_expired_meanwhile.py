"""A command whose scan snapshot is expired while it runs begins again from the head; a reader is told so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.commit import SCANNED
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark


def table_of(lake: Lake, name: str, mode: str) -> None:
    told = ", ".join(f"'write.{what}.mode' = '{mode}'" for what in ("delete", "update", "merge"))
    lake.sql(f"create table {name} (id int, v int) using iceberg tblproperties ({told})")
    lake.sql(f"insert into {name} values (1, 0), (2, 0)")


def replaced_and_expired(lake: Lake, name: str) -> None:
    """Every file of the table is replaced by another, and the old ones are gone."""
    lake.sql(f"insert overwrite {name} values (1, 10), (2, 20), (3, 30)")
    expire_snapshots(lake.engine.load(f"default.{name}"), older_than_ms=2**62, retain_last=1)


def once(what: Callable[[], None]) -> Callable[[str], None]:
    left = [what]

    def hook(phase: str) -> None:
        if phase == SCANNED and left:
            left.pop()()

    return hook


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("update {t} set v = v + 1 where id = 1", [(1, 11), (2, 20), (3, 30)]),
        ("delete from {t} where id = 1", [(2, 20), (3, 30)]),
        ("insert into {t} select 9, cast(sum(v) as int) from {t}", [(1, 10), (2, 20), (3, 30), (9, 60)]),
    ],
    ids=["UPDATE", "DELETE", "INSERT SELECT"],
)
def test_a_command_begins_again(lake: Lake, name: str, mode: str, statement: str, after: list[tuple[int, int]]) -> None:
    table_of(lake, name, mode)
    again: list[str] = []
    hook = once(lambda: replaced_and_expired(lake, name))
    watched = lake.watched(on_phase=hook, on_rerun=lambda conflict: again.append(conflict.check))
    watched.sql(statement.format(t=name))
    assert sorted((row.id, row.v) for row in lake.table(name).scan().collect()) == after
    assert len(again) == 1


def test_a_reader_is_told_in_a_sentence(lake: Lake, name: str) -> None:
    table_of(lake, name, "copy-on-write")
    rows = lake.sql(f"select * from {name}")
    replaced_and_expired(lake, name)
    with pytest.raises(InvalidInput, match=r"is gone: .*parquet\n.*expired meanwhile, run the query again"):
        lake.collect(rows)
    assert len(lake.collect(lake.sql(f"select * from {name}"))) == 3
