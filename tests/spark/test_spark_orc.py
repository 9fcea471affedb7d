"""Files without field ids are read by name, and never when a name may mean another column than it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.pyiceberg_names import StringType
from lakeproof.iceberg.tables.evolution import AddColumn, DropColumn, RenameColumn, SchemaChange, alter_schema
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]
ORC = "using orc options (addTableManagement 'true')"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([RenameColumn("v", "w")], id="renamed"),
        pytest.param([DropColumn("v"), AddColumn("v", StringType())], id="dropped, and its name given again"),
    ],
)
def test_orc_files_whose_columns_another_engine_renamed_are_not_read(
    lake: Lake, rows: Rows, name: str, changes: list[SchemaChange]
) -> None:
    lake.sql(f"create table {name} (id bigint, v string) {ORC}; insert into {name} values (1, 'a')")
    lake.sql(f"alter table {name} add columns (more int)")
    assert rows(f"select * from {name}") == [(1, "a", None)]
    for change in changes:
        alter_schema(lake.engine.load(f"default.{name}"), [change])
    with pytest.raises(InvalidInput, match="column `v` was renamed or dropped"):
        rows(f"select * from {name}")


@pytest.mark.parametrize(
    ("kind", "reason"), [("avro", "cannot write avro files"), ("orc", "without field ids, and nothing maps")]
)
def test_files_that_other_engines_could_not_read_are_not_written(lake: Lake, name: str, kind: str, reason: str) -> None:
    lake.sql(f"create table {name} (id bigint) using iceberg")
    lake.sql(f"alter table {name} set tblproperties ('write.format.default'='{kind}')")
    with pytest.raises(InvalidInput, match=reason):
        lake.sql(f"insert into {name} values (1)")
