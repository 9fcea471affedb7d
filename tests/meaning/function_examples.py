"""The examples in Spark's own documentation of its functions, each as one value of type string."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_EXAMPLE = re.compile(r"^\s*> (SELECT\b.*?);\s*$", re.MULTILINE | re.DOTALL | re.IGNORECASE)
# They tell where the row lies that is read: on a table that is a file, for plain Spark's single row it is nothing.
WHERE_THE_ROW_LIES = ("input_file_name", "input_file_block_start", "input_file_block_length")
_MORE_THAN_A_ROW = ("Aggregate", "Generate", "Window", "Expand")


class Example(NamedTuple):
    """A documented query; `number` counts the examples of one function."""

    function: str
    number: int
    query: str

    @property
    def name(self) -> str:
        """The function and which of its examples."""
        return f"{self.function} {self.number}"


def documented_examples(spark: SparkSession) -> list[Example]:
    """Every example of every function, of values and of tables, in the order of their names."""
    state = spark._jsparkSession.sessionState()
    found = []
    for registry in (state.functionRegistry(), state.tableFunctionRegistry()):
        for name in sorted({each.funcName() for each in _listed(spark, registry.listFunction())}):
            told = _told(spark, registry, name)
            found += [Example(name, number, query) for number, query in enumerate(_queries(told), 1)]
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


def values_in_plain_spark(spark: SparkSession, examples: list[Example]) -> Values:
    """Each example as an expression, with its value in plain Spark, which is asked twice."""
    texts, plain, refused, changing, elsewhere = dict[str, str](), dict[str, str | None](), [], [], []
    for example in examples:
        if any(name in example.query for name in WHERE_THE_ROW_LIES):
            elsewhere.append(example.name)
            continue
        text = as_expression(spark, example.query)
        once, twice = _value(spark, text), _value(spark, text)
        if isinstance(once, PySparkException) or isinstance(twice, PySparkException):
            refused.append(example.name)
        elif once != twice:
            changing.append(example.name)
        else:
            texts[example.name], plain[example.name] = text, once
    return Values(texts, plain, tuple(refused), tuple(changing), tuple(elsewhere))


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


def _value(spark: SparkSession, text: str) -> str | PySparkException | None:
    try:
        return spark.sql(f"select {text}").collect()[0][0]
    except PySparkException as error:
        return error
