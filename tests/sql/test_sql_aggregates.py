"""Only a query that metadata can answer exactly becomes a question to it."""

from __future__ import annotations

import pytest

from lakeproof.filters import Compare
from lakeproof.sql.aggregates import Aggregate, Question, question


def test_counts_and_ends_of_columns_are_questions() -> None:
    assert question("select count(*), min(a) as low, max(b) from db.t") == Question(
        "db.t", (Aggregate("count"), Aggregate("min", "a"), Aggregate("max", "b"))
    )
    assert question("select count(1) from t where p = 'x'") == Question(
        "t", (Aggregate("count"),), Compare("p", "=", "x")
    )


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) from t group by a",
        "select count(distinct a) from t",
        "select count(a) from t",
        "select count(*) + 1 from t",
        "select count(*) from t, u",
        "select count(*) from t join u using (a)",
        "select count(*) from (select * from t)",
        "select min(a) from t where b = 1",
        "select count(*) from t where upper(a) = 'X'",
        "select count(*) from t version as of 5",
        "select count(*) from t limit 0",
        "select distinct count(*) from t",
        "select count(*) from t having count(*) > 1",
        "select min(a + 1) from t",
        "with t as (select 1 a) select count(*) from t",
        "select count(*) from t union all select 1",
        "select count(*) over () from t",
        "select count(*) filter (where a = 1) from t",
        "select count(*), a from t",
    ],
)
def test_everything_else_is_read(text: str) -> None:
    assert question(text) is None
