"""What Lakeproof uses of Spark and PyIceberg that neither promises stands in one file per library, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lakeproof.iceberg import pyiceberg_private
from lakeproof.spark.jvm import spark41

SOURCE = Path(__file__).parents[1] / "src" / "lakeproof"
HOMES = ("spark/jvm/spark41.py", "spark/jvm/versions.py", "iceberg/pyiceberg_private.py")
BESIDE = {"spark/jvm/gateway.py": {"_origin"}}
"""How callbacks of py4j come in: these names of py4j and PySpark."""
OF_TUPLES = {"_replace", "_fields", "_asdict", "_make"}
PUBLIC = {"pyspark", "pyspark.errors", "pyspark.sql", "pyspark.sql.types", "pyspark.sql.functions"}
PUBLIC |= {"pyspark.sql.datasource", "py4j.protocol", "py4j.java_collections"}


class Use(NamedTuple):
    """A private name, and where it is used."""

    place: str
    name: str


def uses(text: str, place: str) -> Iterator[Use]:
    """Private attributes of objects that are not the module's own, names of Spark's classes, and private modules."""
    tree = ast.parse(text)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            mine = (each for each in ast.walk(node) if isinstance(each, ast.Attribute))
            own |= {each.attr for each in mine if isinstance(each.value, ast.Name) and each.value.id == "self"}
            fields = (each.target for each in node.body if isinstance(each, ast.AnnAssign))
            own |= {each.id for each in fields if isinstance(each, ast.Name)}
    for node in ast.walk(tree):
        at = f"{place}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            if "jvm.org.apache.spark" in dotted and not dotted.endswith(("org", "apache", "spark", "sql")):
                yield Use(at, dotted)
            private = node.attr.startswith("_") and not node.attr.startswith("__")
            if private and node.attr not in OF_TUPLES | own and not node.attr.startswith("_lakeproof"):
                yield Use(at, node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "org.apache.spark.sql." in node.value:
            yield Use(at, node.value)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("pyspark", "py4j"):
            yield from () if node.module in PUBLIC else (Use(at, str(node.module)),)


def all_uses() -> list[Use]:
    found = []
    for path in sorted([*(SOURCE / "spark").rglob("*.py"), *(SOURCE / "iceberg").rglob("*.py")]):
        place = path.relative_to(SOURCE).as_posix()
        if place not in HOMES:
            allowed = BESIDE.get(place, set())
            there = uses(path.read_text(encoding="utf-8"), place)
            found += [use for use in there if use.name not in allowed]
    return found


def test_no_private_name_is_used_elsewhere() -> None:
    assert all_uses() == []


@pytest.mark.parametrize(
    "planted",
    [
        "def f(rows):\n    return rows._jdf",
        "kind = 'org.apache.spark.sql.catalyst.TableIdentifier'",
        "def f(gateway):\n    return gateway.jvm.org.apache.spark.sql.types.StructType()",
        "from pyspark.sql.pandas.types import to_arrow_schema",
        "def f(transaction):\n    return transaction._updates",
    ],
)
def test_a_planted_use_is_found(planted: str) -> None:
    assert list(uses(planted, "planted.py"))


def test_nothing_that_is_used_is_missing_here() -> None:
    assert spark41.find_missing_in_jars() == []
    assert pyiceberg_private.find_missing() == []
    assert len(spark41.CLASSES) > 60


def test_a_class_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spark41.find_missing_in_jars(tmp_path) == sorted(spark41.CLASSES)
    monkeypatch.setattr(spark41, "CLASSES", (*spark41.CLASSES, "org.apache.spark.sql.Nowhere"))
    assert spark41.find_missing_in_jars() == ["org.apache.spark.sql.Nowhere"]
    monkeypatch.setattr(pyiceberg_private, "ATTRIBUTES", ((pyiceberg_private.ManifestWriterV2, "_nowhere"),))
    assert pyiceberg_private.find_missing() == ["ManifestWriterV2._nowhere"]
