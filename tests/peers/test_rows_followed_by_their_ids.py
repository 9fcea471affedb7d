"""Format v3: our commands beside rewrites of Apache Iceberg, which record nothing: row ids tell where rows went."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from both_engines import MERGE_ON_READ, Engines, Rows

pytestmark = [pytest.mark.peer, pytest.mark.spark, pytest.mark.slow]
COMPACT = "call lakeproof.system.rewrite_data_files(table => 'default.{{t}}', {}options => map('rewrite-all','true'))"
BIN_PACK, SORTED = COMPACT.format(""), COMPACT.format("strategy => 'sort', sort_order => 'id desc', ")
COPY_ON_WRITE = "alter table {t} set tblproperties ('write.update.mode'='copy-on-write')"
UPDATE, DELETE = "update {t} set v = 'ours' where id = 1 and ", "delete from {t} where id = 1 and "
THEIR_UPDATE = "update {t} set v = 'theirs' where id = "


class Case(NamedTuple):
    """What we do, what Apache Iceberg commits meanwhile, how often ours runs again, and the rows then."""

    ours: str
    theirs: str
    reruns: int
    rows: Rows


CASES = {
    "UPDATE, bin-pack": Case(UPDATE, BIN_PACK, 0, [(1, "ours"), (2, "b"), (4, "d")]),
    "UPDATE, sort": Case(UPDATE, SORTED, 0, [(1, "ours"), (2, "b"), (4, "d")]),
    "DELETE, bin-pack": Case(DELETE, BIN_PACK, 0, [(2, "b"), (4, "d")]),
    "DELETE, sort": Case(DELETE, SORTED, 0, [(2, "b"), (4, "d")]),
    "DELETE, copy of a neighbour": Case(DELETE, THEIR_UPDATE + "2", 0, [(2, "theirs"), (4, "d")]),
    "UPDATE, copy of a neighbour": Case(UPDATE, THEIR_UPDATE + "2", 0, [(1, "ours"), (2, "theirs"), (4, "d")]),
    "UPDATE, the same row": Case(UPDATE, THEIR_UPDATE + "1", 1, [(1, "ours"), (2, "b"), (4, "d")]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_our_command_runs_again_only_where_its_own_row_was_changed(engines: Engines, name: str, case: Case) -> None:
    ours, theirs = engines.ours, engines.theirs
    told = f"'format-version'='3', {MERGE_ON_READ}"
    theirs.sql(f"create table {name} (id int, v string) using iceberg tblproperties({told})")
    theirs.sql(f"insert into {name} select /*+ coalesce(1) */ * from values (1, 'a'), (2, 'b'), (3, 'c') as x(id, v)")
    theirs.sql(f"insert into {name} values (4, 'd')")
    theirs.sql(f"delete from {name} where id = 3")
    ids = dict(theirs.sql(f"select id, _row_id from {name}"))
    held = engines.held(ours, case.ours.format(t=name) + "{gate}", f"gate-{name}")
    theirs.sql(COPY_ON_WRITE.format(t=name))  # ours has begun as merge-on-read
    theirs.sql(case.theirs.format(t=name))
    held.go_on()
    assert engines.rows(name) == case.rows
    said = engines.table(name).current_snapshot()
    assert said is not None
    assert said.summary is not None
    assert int(said.summary.additional_properties.get("lakeproof.reruns") or 0) == case.reruns
    assert dict(theirs.sql(f"select id, _row_id from {name}")) == {key: ids[key] for key, _ in case.rows}
