"""Iceberg's functions `system.bucket`, `truncate`, `years`, `months`, `days` and `hours`, as Spark's own expressions.

Spark looks for a function of the session's catalog in its registry before it asks for a class. What is registered
there under the database `system` is called with the resolved arguments, and answers with an expression.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.iceberg import pyiceberg_names as iceberg
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, JavaProxy, from_java, items_of
from lakeproof.spark.jvm.spark_types import to_iceberg_type
from lakeproof.spark.jvm.versions import function_catalogs
from lakeproof.spark.writing.transforms import transform_column

NAMES = ("bucket", "truncate", "years", "months", "days", "hours", "iceberg_version")
_TIMES = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
SYSTEM = "system"


def register_functions(gateway: Gateway) -> None:
    """The session knows the functions from now on."""
    registry = gateway.session.sessionState().functionRegistry()
    for name in NAMES:
        for catalog in function_catalogs():
            within = gateway.none if catalog is None else gateway.some(catalog)
            known = gateway.named(spark41.FUNCTION_IDENTIFIER)(name, gateway.some(SYSTEM), within)
            info = gateway.named(spark41.EXPRESSION_INFO)("lakeproof", SYSTEM, name)
            registry.registerFunction(known, info, TransformFunction(gateway, name))


class TransformFunction(JavaProxy):
    """A function of Iceberg's, from its arguments to an expression."""

    def __init__(self, gateway: Gateway, name: str) -> None:
        super().__init__(gateway)
        self.name = name

    @from_java
    def apply(self, arguments: Any) -> Any:
        """The expression that the call means."""
        given = list(items_of(arguments))
        return self.gateway.session.expression(spark41.java_column(self._column(given)))

    def _column(self, given: list[Any]) -> Column:
        if self.name == "iceberg_version":
            self._expect(given, 0)
            return F.lit(f"lakeproof {version('lakeproof')}")
        if self.name in _TIMES:
            self._expect(given, 1)
            kind = self._kind(given[0], iceberg.DateType, iceberg.TimestampType, iceberg.TimestamptzType)
            value = transform_column(self._of(given[0]), _TIMES[self.name], kind)
            return F.date_from_unix_date(value) if self.name == "days" else value
        self._expect(given, 2)
        number, kind = self._number(given[0]), self._kind(given[1])
        return transform_column(self._of(given[1]), f"{self.name}[{number}]", kind)

    def _expect(self, given: list[Any], count: int) -> None:
        if len(given) != count:
            raise InvalidInput(f"system.{self.name} takes {count} arguments, not {len(given)}")

    def _number(self, expression: Any) -> int:
        if not expression.foldable() or not str(expression.dataType().simpleString()).endswith("int"):
            raise InvalidInput(f"the first argument of system.{self.name} must be a whole number")
        found = int(expression.eval(None))
        if found < 1:
            raise InvalidInput(f"the first argument of system.{self.name} must be above 0, not {found}")
        return found

    def _kind(self, expression: Any, *allowed: type) -> iceberg.IcebergType:
        kind = spark.StructType.fromJson(
            {
                "fields": [
                    {"name": "x", "type": json.loads(expression.dataType().json()), "nullable": True, "metadata": {}}
                ]
            }
        )
        found = to_iceberg_type(kind.fields[0].dataType, iter(range(1, 1000)), self.name)
        if (allowed and not isinstance(found, allowed)) or (
            not allowed and not isinstance(found, _TRANSFORMED[self.name])
        ):
            raise InvalidInput(f"system.{self.name} takes no {expression.dataType().simpleString()}")
        return found

    def _of(self, expression: Any) -> Column:
        return Column(self.gateway.static(spark41.EXPRESSION_UTILS, "column")(expression))

    def toString(self) -> str:
        """No other function is this one."""
        return f"lakeproof function {self.name}"

    class Java:
        """What py4j reads."""

        implements = [spark41.FUNCTION]  # noqa: RUF012


_TRUNCATED = (iceberg.IntegerType, iceberg.LongType, iceberg.DecimalType, iceberg.StringType, iceberg.BinaryType)
_TRANSFORMED = {
    "truncate": _TRUNCATED,
    "bucket": (*_TRUNCATED, iceberg.DateType, iceberg.TimestampType, iceberg.TimestamptzType),
}
