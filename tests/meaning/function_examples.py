"""The examples in Spark's own documentation of its functions, each as one value of type string."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_EXAMPLE = re.compile(r"^\s*> (SELECT\b.*?);\s*$", re.MULTILINE | re.DOTALL | re.IGNORECASE)
# They tell where the row lies that is read: on a table that is a file, for plain Spark's single row it is nothing.
WHERE_THE_ROW_LIES = ("input_file_name", "input_file_block_start", "input_file_block_length")
_MORE_THAN_A_ROW = ("Aggregate", "Generate", "Window", "Expand")


class Example(NamedTuple):
    """A documented query of a function, of values or of tables; `number` counts the examples of one function."""

    kind: str
    function: str
    number: int
    query: str

    @property
    def name(self) -> str:
        """The function and which of its examples."""
        return f"{self.kind}{self.function} {self.number}"


def documented_examples(spark: SparkSession) -> list[Example]:
    """Every example of every function, of values and of tables, in the order of their names."""
    state = spark._jsparkSession.sessionState()
    found = []
    for kind, registry in (("", state.functionRegistry()), ("table function ", state.tableFunctionRegistry())):
        for name in sorted({each.funcName() for each in _listed(spark, registry.listFunction())}):
            told = _told(spark, registry, name)
            found += [Example(kind, name, number, query) for number, query in enumerate(_queries(told), 1)]
    return found


def _listed(spark: SparkSession, names: Any) -> Iterator[Any]:
    yield from getattr(spark._jvm, "scala.jdk.javaapi.CollectionConverters").asJava(names)


def _told(spark: SparkSession, registry: Any, name: str) -> str:
    identifier = getattr(spark._jvm, "org.apache.spark.sql.catalyst.FunctionIdentifier")(name)
    info = registry.lookupFunction(identifier)
    return str(info.get().getExamples()) if info.isDefined() else ""


def _queries(told: str) -> list[str]:
    return [" ".join(found.split("\n")) if "\n" in found else found for found in _EXAMPLE.findall(told)]


class Values(NamedTuple):
    """The examples that have a value, and the names of those that have none, by why."""

    texts: dict[str, str]
    plain: dict[str, str | None]
    refused: tuple[str, ...]
    changing: tuple[str, ...]
    elsewhere: tuple[str, ...]


def values_in_plain_spark(spark: SparkSession, examples: Sequence[Example]) -> Values:
    """Each example as an expression, with its value in plain Spark, which is asked twice."""
    here = [one for one in examples if not any(name in one.query for name in WHERE_THE_ROW_LIES)]
    elsewhere = tuple(one.name for one in examples if one not in here)
    texts = {one.name: as_expression(spark, one.query) for one in here}
    once, twice = evaluated(spark, texts), evaluated(spark, texts)
    changing = tuple(name for name in once if name in twice and once[name] != twice[name])
    plain = {name: value for name, value in once.items() if name in twice and name not in changing}
    refused = tuple(name for name in texts if name not in plain and name not in changing)
    return Values({name: texts[name] for name in plain}, plain, refused, changing, elsewhere)


def evaluated(spark: SparkSession, texts: Mapping[str, str], at_once: int = 50) -> dict[str, str | None]:
    """The values of expressions by their names, many in a query; one that Spark refuses has none."""
    found: dict[str, str | None] = {}
    names = list(texts)
    for start in range(0, len(names), at_once):
        some = names[start : start + at_once]
        try:
            row = spark.sql(f"select {', '.join(texts[name] for name in some)}").collect()[0]
            found |= dict(zip(some, row, strict=True))
        except PySparkException:
            if len(some) > 1:
                found |= evaluated(spark, {name: texts[name] for name in some}, max(1, len(some) // 3))
    return found


def as_expression(spark: SparkSession, query: str) -> str:
    """The query's value as text: the expression itself where it is one, else all its rows in a scalar subquery."""
    whole = f"(select cast(collect_list(struct(*)) as string) from ({query}))"
    head, _, expression = query.partition(" ")
    if head.upper() != "SELECT" or not _is_one_value(spark, query):
        return whole
    return f"cast({expression} as string)"


def _is_one_value(spark: SparkSession, query: str) -> bool:
    """One row of one column, of nothing but itself."""
    try:
        rows = spark.sql(f"select cast({query.partition(' ')[2]} as string)")
    except PySparkException:
        return False
    plan = rows._jdf.queryExecution().analyzed().toString()
    return not any(node in plan for node in _MORE_THAN_A_ROW) and "OneRowRelation" in plan
