"""Which target rows a MERGE can match at all: those whose key is among the source's, or between the least and greatest.

Iceberg's own MERGE has no such predicate: every file is read, every row is shuffled, and every concurrent commit may
conflict. Beyond a few hundred keys a Bloom filter of them keeps most rows without a partner out of the join. A small
target is read whole, which is faster than to ask the source first; its ends are told while the MERGE runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, texts_of
from lakeproof.spark.reading.columns import named_column
from lakeproof.spark.row_level.literals import spark_literals

MOST_KEYS = 200
_FEW_ROWS = 10_000  # a source of so few rows brings its keys to the driver
_SMALL_BYTES = 1024 * 1024  # of keys: probably few enough to be listed at once
_BROADCAST_BYTES, _BUILD_BYTES = 32 * 1024 * 1024, 64 * 1024 * 1024  # of the whole source; of a shuffled part of it
_LEAST_EXPECTED, _MOST_EXPECTED = 100_000, 2_000_000  # keys in a Bloom filter: a large one misses every cache
_PRINTED = re.compile(r"(.*)#(\d+)L?(?:-T\d+ms)?", re.DOTALL)
KEYS_TOLD = "_lakeproof_keys"
_ENDS = (("min", F.min), ("max", F.max))
# Java's old calendar, by which dates would leave the JVM, has no days between 4 and 15 October 1582.
_AS_NUMBER: dict[str, tuple[Callable[[Column], Column], Callable[[Column], Column]]] = {
    "date": (F.unix_date, F.date_from_unix_date),
    "timestamp": (F.unix_micros, F.timestamp_micros),
}
_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_HASHED = (*_WHOLE_NUMBERS, "string", "date", "timestamp", "timestamp_ntz", "binary")  # equal values, equal hashes


class _Pair(NamedTuple):
    """One equality of the ON clause; `column` is the target's, if its side is a plain one."""

    target: Any
    source: Any
    column: Column | None


class ToldKey(NamedTuple):
    """A column of the target, the source's key for it, and the type of that."""

    column: Column
    key: Column
    kind: str


class Keys(NamedTuple):
    """What the keys of a source say: conditions on the target, and its number of rows (`None`: not counted).

    `told` are those whose least and greatest value the source tells on its way (`watched`).
    """

    conditions: tuple[Column, ...] = ()
    rows: int | None = None
    told: tuple[ToldKey, ...] = ()

    def watched(self, source: DataFrame) -> DataFrame:
        """The source, telling the ends of its keys."""
        if not self.told:
            return source
        watched = [_AS_NUMBER[one.kind][0](one.key) if one.kind in _AS_NUMBER else one.key for one in self.told]
        ends = [f(key).alias(f"{end}_{number}") for number, key in enumerate(watched) for end, f in _ENDS]
        return source.observe(KEYS_TOLD, *ends)

    def heard(self, gateway: Gateway, told: Any) -> tuple[Column, ...]:
        """The conditions on the target that the ends of the keys, a row of the JVM, allow."""
        literal = gateway.static(spark41.FUNCTIONS, "lit")

        def condition(one: ToldKey, least: Any, greatest: Any) -> Column:
            if least is None:  # no key but nulls, which equal nothing
                return F.lit(False)
            ends = [Column(literal(end)) for end in (least, greatest)]
            return one.column.between(
                *(_AS_NUMBER[one.kind][1](end) if one.kind in _AS_NUMBER else end for end in ends)
            )

        return tuple(
            condition(one, told.apply(2 * number), told.apply(2 * number + 1)) for number, one in enumerate(self.told)
        )


def keys_of(engine: Engine, target: DataFrame, source: DataFrame, on: Column, *, is_small: bool = False) -> Keys:
    """The conditions that the equalities `target expression = source expression` of an ON clause allow.

    Of a small target, whose every row may be read, no pass over a larger source asks for them first.
    """
    pairs = list(_equalities(spark41.execution_of(target.join(source, on, "inner")).analyzed(), target))
    if not pairs:
        return Keys()
    names = [f"key_{number}" for number in range(len(pairs))]
    columns = [_as_column(engine, pair.source).alias(name) for pair, name in zip(pairs, names, strict=True)]
    keys = source.select(*columns)
    if _bytes(keys) <= _SMALL_BYTES:
        found = _listed(keys, pairs, names)
        if found is not None:
            return found
    if is_small:
        return Keys(told=tuple(_told(engine, pair, pair.column) for pair in pairs if pair.column is not None))
    told = _between(engine, keys, pairs, names)
    few = told.rows is not None and told.rows <= _FEW_ROWS
    return (_listed(keys, pairs, names) if few else None) or told


def _told(engine: Engine, pair: _Pair, column: Column) -> ToldKey:
    return ToldKey(column, _as_column(engine, pair.source), str(pair.source.dataType().simpleString()))


def _listed(keys: DataFrame, pairs: Sequence[_Pair], names: Sequence[str]) -> Keys | None:
    """Every key by itself; `None`: there are too many."""
    few = keys.limit(_FEW_ROWS + 1).toArrow()
    if few.num_rows > _FEW_ROWS or few.group_by(list(names)).aggregate([]).num_rows > MOST_KEYS:
        return None
    listed = [(pair, few[name]) for pair, name in zip(pairs, names, strict=True) if pair.column is not None]
    return Keys(tuple(_among(pair, values) for pair, values in listed), few.num_rows)


def hinted(source: DataFrame, rows: int | None, *, preserved: bool) -> DataFrame:
    """The source with the join that suits its size; a side whose every row must come out cannot be broadcast."""
    if rows is None:
        return source
    size = rows * sum(_width(field.dataType.simpleString()) for field in source.schema.fields)
    if size <= _BROADCAST_BYTES and not preserved:
        return source.hint("broadcast")
    parts = int(source.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    return source.hint("shuffle_hash") if size <= _BUILD_BYTES * parts else source


def _width(kind: str) -> int:
    return 8 if kind in (*_WHOLE_NUMBERS, "double", "float", "date", "timestamp", "boolean") else 32


def _among(pair: _Pair, values: pa.ChunkedArray) -> Column:
    assert pair.column is not None
    listed = spark_literals(pc.unique(values))
    return pair.column.isin(*listed) if listed else F.lit(False)


def _between(engine: Engine, keys: DataFrame, pairs: Sequence[_Pair], names: Sequence[str]) -> Keys:
    """One pass over the keys: how many, the ends of each, and a Bloom filter of all together."""
    hashed = all(pair.source.dataType().simpleString() in _HASHED for pair in pairs)
    found = [f(name).alias(f"{end}_{name}") for name in names for end, f in _ENDS]
    bloom = [_bloom(engine.gateway, keys, names).alias("bloom")] if hashed else []
    told = keys.agg(F.count(F.lit(1)).alias("rows"), *found, *bloom).toArrow()
    conditions = [
        _within(pair.column, spark_literals(told[f"min_{name}"]), spark_literals(told[f"max_{name}"]))
        for pair, name in zip(pairs, names, strict=True)
        if pair.column is not None
    ]
    if hashed and told["bloom"].null_count == 0:
        conditions.append(_might_contain(engine, told.select(["bloom"]), [pair.target for pair in pairs]))
    return Keys(tuple(conditions), told["rows"][0].as_py())


def _within(column: Column, least: list[Column], most: list[Column]) -> Column:
    return column.between(least[0], most[0]) if least else F.lit(False)


def _bloom(gateway: Gateway, keys: DataFrame, names: Sequence[str]) -> Column:
    """Spark's own aggregate, which no function of its gives; of the rows that the optimizer believes in, a quarter."""
    expressions = gateway.named(spark41.EXPRESSION_UTILS)
    expected = max(_LEAST_EXPECTED, min(_MOST_EXPECTED, _bytes(keys) // 32))
    kind = gateway.named(spark41.BLOOM_FILTER_AGGREGATE)
    made = kind(expressions.expression(spark41.java_column(F.xxhash64(*names))), expected)
    return Column(expressions.column(made.toAggregateExpression()))


def _might_contain(engine: Engine, bloom: pa.Table, sides: Sequence[Any]) -> Column:
    """True where the target's keys may be in the filter, which is a subquery of one row: as a literal it would be

    printed with every plan and sent with every predicate.
    """
    gateway = engine.gateway
    expressions = gateway.named(spark41.EXPRESSION_UTILS)
    held = gateway.spark.createDataFrame(bloom).scalar()
    hashed = F.xxhash64(*[_as_column(engine, side) for side in sides])
    kind = gateway.named(spark41.BLOOM_FILTER_MIGHT_CONTAIN)
    both = [expressions.expression(spark41.java_column(column)) for column in (held, hashed)]
    return Column(expressions.column(kind(*both)))


def _bytes(rows: DataFrame) -> int:
    """What the optimizer believes, which is seldom too little."""
    return int(str(spark41.execution_of(rows).optimizedPlan().stats().sizeInBytes()))


def _as_column(engine: Engine, expression: Any) -> Column:
    return Column(engine.gateway.named(spark41.EXPRESSION_UTILS).column(expression))


def only_matching(target: DataFrame, keys: Keys) -> DataFrame:
    """The rows of the target that the keys allow."""
    return reduce(DataFrame.filter, keys.conditions, target)


def _equalities(plan: Any, target: DataFrame) -> Iterator[_Pair]:
    """The join's equalities between one expression of the target and one of the source."""
    own = dict(_ids_and_names(spark41.execution_of(target).analyzed().output()))
    node = plan
    while node.nodeName() != "Join":
        node = node.children().apply(0)
    if node.condition().isEmpty():
        return
    for equality in _conjuncts(node.condition().get()):
        if equality.nodeName() != "EqualTo" or not _is_plain(equality.left()):
            continue
        for left, right in ((equality.left(), equality.right()), (equality.right(), equality.left())):
            if _all_in(left, own) and not _any_in(right, own):
                yield _Pair(left, right, _column(left, own))
                break


def _is_plain(expression: Any) -> bool:
    return not str(expression.dataType().simpleString()).startswith(("struct", "array", "variant"))


def _ids(expression: Any) -> list[int]:
    return [number for number, _ in _ids_and_names(expression.references().toSeq())]


def _ids_and_names(attributes: Any) -> list[tuple[int, str]]:
    """What a Seq of attributes prints, in one call: `name#12`, or `name#12L` of a bigint."""
    told = (_PRINTED.fullmatch(text) for text in texts_of(attributes))
    return [(int(found[2]), found[1]) for found in told if found is not None]


def _all_in(expression: Any, own: dict[int, str]) -> bool:
    ids = _ids(expression)
    return bool(ids) and all(one in own for one in ids) and bool(expression.deterministic())


def _any_in(expression: Any, own: dict[int, str]) -> bool:
    return any(one in own for one in _ids(expression)) or not expression.deterministic()


def _column(expression: Any, own: dict[int, str]) -> Column | None:
    """The target column behind a plain reference, or behind a cast that only makes a whole number wider."""
    if expression.nodeName() == "Cast":
        kinds = [str(kind.simpleString()) for kind in (expression.child().dataType(), expression.dataType())]
        if not all(kind in _WHOLE_NUMBERS for kind in kinds):
            return None
        if _WHOLE_NUMBERS.index(kinds[0]) > _WHOLE_NUMBERS.index(kinds[1]):
            return None
        expression = expression.child()
    if expression.nodeName() != "AttributeReference":
        return None
    name = own.get(expression.exprId().id())
    return None if name is None else named_column(name)


def _conjuncts(condition: Any) -> Iterator[Any]:
    if condition.nodeName() == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition
