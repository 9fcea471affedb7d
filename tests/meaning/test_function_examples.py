"""Every documented example of Spark's functions has the same value in an UPDATE of a managed table as in plain Spark.

`LAKEPROOF_MEANING_EXAMPLES` says how many examples, evenly spread over all of them.
"""

from __future__ import annotations

import os
from contextlib import nullcontext

import pytest
from function_examples import Values, documented_examples, evaluated, values_in_plain_spark
from pyspark.errors import PySparkException

from lakeproof.errors import LakeproofError
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Captured = pytest.CaptureFixture[str]
WANTED = int(os.environ.get("LAKEPROOF_MEANING_EXAMPLES", "60"))
AT_ONCE = 50


def test_the_examples_of_all_functions_have_the_same_values(lake: Lake, capsys: Captured) -> None:
    plain = lake.spark.newSession()
    documented = documented_examples(plain)
    assert len(documented) > 1100
    step = max(1, len(documented) // WANTED)
    values = values_in_plain_spark(plain, documented[::step])
    with capsys.disabled() if len(documented) < WANTED else nullcontext():
        print(f"\n{told(values)}")
    columns = ", ".join(f"c{number} string" for number in range(AT_ONCE))
    lake.sql(f"create table examples (id int, {columns}) using iceberg")
    lake.sql("insert into examples (id) values (1)")
    found = assigned(lake, values.texts)
    differ = [name for name, value in values.plain.items() if name not in found or found[name] != value]
    later = evaluated(plain, {name: values.texts[name] for name in differ})  # the hour or the day may have changed
    differ = [name for name in differ if later.get(name) == values.plain[name]]
    assert not differ, "\n".join(
        f"{name}: {values.texts[name]}\n  got {found.get(name, 'an error')!r}, expected {values.plain[name]!r}"
        for name in differ
    )


def assigned(lake: Lake, texts: dict[str, str]) -> dict[str, str | None]:
    """The values after UPDATEs of fifty columns each; where one is refused, each of its values is assigned alone."""
    found: dict[str, str | None] = {}
    names = list(texts)
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        try:
            found |= updated(lake, {name: texts[name] for name in some})
        except (PySparkException, LakeproofError):
            for name in some:
                found |= updated_alone(lake, name, texts[name])
    return found


def updated(lake: Lake, texts: dict[str, str]) -> dict[str, str | None]:
    """One UPDATE, and what it stored."""
    listed = ", ".join(f"c{number} = {text}" for number, text in enumerate(texts.values()))
    lake.spark.sql(f"update examples set {listed}")
    row = lake.spark.sql("select * from examples").collect()[0]
    return {name: row[number + 1] for number, name in enumerate(texts)}


def updated_alone(lake: Lake, name: str, text: str) -> dict[str, str | None]:
    """One value; what cannot be assigned has none."""
    try:
        return updated(lake, {name: text})
    except (PySparkException, LakeproofError) as error:
        print(f"  {name}: {str(error).splitlines()[0][:200]}")
        return {}


def told(values: Values) -> str:
    """What is compared, and by name what is not."""
    subqueries = sum(text.startswith("(select") for text in values.texts.values())
    return "\n".join(
        [
            f"{len(values.texts)} examples are compared, {subqueries} of them in a scalar subquery",
            f"{len(values.refused)} refused by plain Spark: {', '.join(values.refused)}",
            f"{len(values.changing)} change by run: {', '.join(values.changing)}",
            f"{len(values.elsewhere)} tell where a row lies: {', '.join(values.elsewhere)}",
        ]
    )
