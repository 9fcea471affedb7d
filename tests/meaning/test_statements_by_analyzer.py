"""A table of statements with the rows that Spark's parser and analyzer make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from pyspark.errors import PySparkException

from lakeproof.errors import LakeproofError
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]
Settings = Callable[[str, str], None]

COLUMNS = "id bigint, name string, d date, p struct<x:int,y:string>, x int, `c.d` int"
VALUES = """(1, 'a', date'2024-01-01', named_struct('x', 1, 'y', 'q'), 7, 1),
            (2, 'b', date'2024-01-02', null, 8, 2),
            (3, null, null, named_struct('x', 3, 'y', null), null, 3),
            (4, 'it''s', date'2024-01-04', named_struct('x', 7, 'y', 'z'), 1, 4)"""
SHOWN = "select id, name, p.x px, x, `c.d` from w order by id, name"
KNOWN = {1: (1, "a", 1, 7, 1), 2: (2, "b", None, 8, 2), 3: (3, None, 3, None, 3), 4: (4, "it's", 7, 1, 4)}


class Refused(NamedTuple):
    """An error: the condition of Spark's, or a word of the sentence that stands for it."""

    condition: str
    word: str


class Case(NamedTuple):
    """A command and the rows after it: a number stands for the row of that id as it was."""

    text: str
    expected: list[Any] | Refused
    args: Any = None
    settings: Mapping[str, str] = {}


ANSI_OFF = {"spark.sql.ansi.enabled": "false"}
SOURCE = "(select * from values (1, 'm', 5), (2, 'n', null), (9, 'new', 1), (10, 'no', 2) as v(id, name, x)) s"
CONDITIONS = [
    Case("delete from w where name not like 'a%'", [1, 3]),
    Case("delete from w where not (x = null)", [1, 2, 3, 4]),
    Case("delete from w where p.x = 7", [1, 2, 3]),
    Case("delete from w where w.x = 7", [2, 3, 4]),
    Case("delete from w where name = 'it''s'", [1, 2, 3]),
    Case("delete from w where w.id = 1 or default.w.id = 2 or spark_catalog.default.w.id = 3", [4]),
    Case("delete from w where `c.d` = 2", [1, 3, 4]),
    Case("delete from `default`.`w` as `q` where `q`.`id` = 1", [2, 3, 4]),
    Case("delete from w where d < '2024-01-02'", [2, 3, 4]),
    Case("delete from w where date_format(d, 'E') = 'Mon' or locate('t', name) = 2", [2, 3]),
    Case("delete from w where id = :i", [1, 3, 4], {"i": 2}),
    Case("delete from w where name = ? and id = ?", [1, 2, 3], ["it's", 4]),
    Case("delete from w where id not in (select id from w where x > 1)", [1, 2]),
    Case("delete from w where exists (select 1 from w o where o.id > w.id and o.x < w.x)", [3, 4]),
    Case("with c as (select 2 k union all select 3) delete from w where id in (select k from c)", [1, 4]),
    Case("delete w where id = 1", Refused("PARSE_SYNTAX_ERROR", "Syntax error")),
    Case("delete from w where nosuch = 1", Refused("UNRESOLVED_COLUMN", "nosuch")),
]
ASSIGNMENTS = [
    Case("update w set p.x = 99 where id = 1", [(1, "a", 99, 7, 1), 2, 3, 4]),
    Case("update w set w.`c.d` = -1, name = concat(name, '''') where `c.d` = 4", [1, 2, 3, (4, "it's'", 7, 1, -1)]),
    Case(
        "update w set x = (select max(o.id) from w o where o.id < w.id) where id > 2",
        [1, 2, (3, None, 3, 2, 3), (4, "it's", 7, 3, 4)],
    ),
    Case(
        "update w set x = 3000000000 where id = 1", Refused("CAST_OVERFLOW_IN_TABLE_INSERT", "overflow"), None, ANSI_OFF
    ),
    Case(
        "update w set x = 'abc' where id = 1",
        Refused("INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST", "incompatible"),
        None,
        ANSI_OFF,
    ),
    Case("update w set x = cast('abc' as int) where id = 1", [(1, "a", 1, None, 1), 2, 3, 4], None, ANSI_OFF),
    Case(
        "update w set x = id where id = 1",
        Refused("INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST", "incompatible"),
        None,
        {"spark.sql.storeAssignmentPolicy": "STRICT"},
    ),
    Case(
        "update w set name = :n, x = :v where id = :i",
        [(1, "o'\\x", 1, None, 1), 2, 3, 4],
        {"n": "o'\\x", "v": None, "i": 1},
    ),
    Case("update w set x = cast(floor(rand()) as int) where id = 1", [(1, "a", 1, 0, 1), 2, 3, 4]),
    Case("update w set x = 1, x = 2", Refused("DATATYPE_MISMATCH.INVALID_ROW_LEVEL_OPERATION_ASSIGNMENTS", "x")),
]
MERGES = [
    Case(
        f"""merge into w a using {SOURCE} on a.id = s.id
        when matched and s.x is null then delete
        when matched then update set name = concat(s.name, a.name), a.p.x = s.x
        when not matched and s.name like 'n%w' then insert (id, name, `c.d`) values (s.id, name, s.x)
        when not matched by source and a.p.x = 3 then update set x = -1
        when not matched by source then delete""",
        [(1, "ma", 5, 7, 1), (3, None, 3, -1, 3), (9, "new", None, None, 1)],
    ),
    Case(
        """merge into w using (select id, upper(name) name, d, p, x, `c.d` from w where id < 3 union all
        select 8, 'v', null, null, 0, 8) s on w.id = s.id
        when matched then update set * when not matched then insert *""",
        [(1, "A", 1, 7, 1), (2, "B", None, 8, 2), 3, 4, (8, "v", None, 0, 8)],
    ),
    Case(
        "merge into w using (select 1 id) s on w.id = s.id when not matched then insert (id) values (w.id)",
        Refused("UNRESOLVED_COLUMN", "w`.`id"),
    ),
    Case("insert into w select * from w where d < date'2024-01-02'", [1, 1, 2, 3, 4]),
]
QUERIES = {
    "select w.id from w where w.p.x = 7": [(4,)],
    "select default.w.id, w.p.x from w join (select * from w version as of 'main') v on w.id = v.id where v.id = 1": [
        (1, 1)
    ],
    "select count(*) from w a where not (a.x = null)": [(0,)],
    "select count(*) from w where d >= '2024-01-02'": [(2,)],
    "with c as (select * from w) select count(*) n from c where c.id > 1": [(3,)],
}


@pytest.fixture(scope="module")
def first_snapshot(lake: Lake) -> Iterator[int]:
    lake.sql(f"create table w ({COLUMNS}) using iceberg")
    lake.sql(f"insert into w values {VALUES}")
    yield lake.table("w").snapshots()[0].snapshot_id
    lake.sql("drop table w")


@pytest.fixture
def filled(lake: Lake, first_snapshot: int) -> None:
    lake.sql(f"call system.rollback_to_snapshot('w', {first_snapshot})")


@pytest.mark.parametrize("case", [*CONDITIONS, *ASSIGNMENTS, *MERGES], ids=lambda case: " ".join(case.text.split()))
def test_a_command_means_what_the_analyzer_says(
    lake: Lake, rows: Rows, filled: None, settings: Settings, case: Case
) -> None:
    for key, value in case.settings.items():
        settings(key, value)
    if isinstance(case.expected, Refused):
        refuses(lake, case, case.expected)
        assert rows(SHOWN) == [KNOWN[number] for number in (1, 2, 3, 4)]
        return
    lake.spark.sql(case.text, case.args) if case.args else lake.spark.sql(case.text)
    assert rows(SHOWN) == [KNOWN[one] if isinstance(one, int) else one for one in case.expected]


def refuses(lake: Lake, case: Case, wanted: Refused) -> None:
    """The command raises what is wanted."""
    with pytest.raises((PySparkException, LakeproofError)) as caught:
        lake.spark.sql(case.text)
    error = caught.value
    if isinstance(error, PySparkException):
        assert (error.getCondition() or "").startswith(wanted.condition)
    else:
        assert wanted.word in str(error)


@pytest.mark.parametrize(("text", "expected"), QUERIES.items(), ids=QUERIES)
def test_a_query_means_what_the_analyzer_says(
    rows: Rows, filled: None, text: str, expected: Sequence[tuple[Any, ...]]
) -> None:
    assert rows(text) == expected
