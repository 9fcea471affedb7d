"""The story of one managed table, told on a real Spark: inserts make snapshots, scans are pruned, the past is kept."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from lakeproof.spark.lake import Lake
from lakeproof.spark.store_sales import COLUMNS, DEPENDENCIES, write_store_sales

_DATA = ", ".join(column.split()[0] for column in COLUMNS.split(", ") if not column.startswith("ss_sold_date_sk"))
_ONE_DAY = "ss_sold_date_sk='0906245'"


def run_walkthrough(lake: Lake, out: Console, *, name: str = "store_sales_out") -> None:
    """Tell the walk-through on generated store sales: 30 files, 6 days, 2,109 rows."""
    with tempfile.TemporaryDirectory(prefix="store_sales_") as folder:
        _Telling(lake, out, name, write_store_sales(Path(folder))).tell()


class _Telling:
    """The statements in their order, each shown before what it gives."""

    def __init__(self, lake: Lake, out: Console, name: str, source: Path) -> None:
        self.lake, self.out, self.name, self.source = lake, out, name, source

    def tell(self) -> None:
        """The whole story; the source table is Spark's own, and gone at the end."""
        self.out.print(Rule("A managed table on Spark", align="left"))
        before = str(self.lake.spark.conf.get("spark.sql.files.minPartitionNum", "1"))
        self.lake.sql(f"drop table if exists {self.name}")
        self.lake.sql(
            f"create table store_sales ({COLUMNS}) using parquet options (path '{self.source}') "
            "partitioned by (ss_sold_date_sk)"
        )
        try:
            self.lake.sql("msck repair table store_sales")
            self.lake.sql("set spark.sql.files.minPartitionNum=30")  # one task, and so one file, per source file
            self._create()
            first = self._inserts()
            self._overwrites(first)
            self._last_query()
        finally:
            self.lake.sql("drop table store_sales")
            self.lake.spark.conf.set("spark.sql.files.minPartitionNum", before)

    def _create(self) -> None:
        self._say(
            f"create table {self.name} (… 16 columns …) using parquet\n"
            f'options (addTableManagement "true", columnDependencies "{DEPENDENCIES}")\n'
            "partitioned by (ss_sold_date_sk)"
        )
        self.lake.sql(
            f'create table {self.name} ({COLUMNS}) using parquet options (addTableManagement "true", '
            f'columnDependencies "{DEPENDENCIES}") partitioned by (ss_sold_date_sk)'
        )

    def _inserts(self) -> int:
        """Two inserts; the time of the first."""
        self._do(f"insert into {self.name} select * from store_sales")
        self._count(f"select count(*) from {self.name}")
        self._count(f"select count(*) from {self.name} where {_ONE_DAY}")
        self._pruning(f"select * from {self.name} where {_ONE_DAY}")
        first = int(self.lake.sql(f"select timeMillis from `{self.name}$snapshots`").collect()[0][0])
        self._do(f"insert into {self.name} select * from store_sales")
        self._count(f"select count(*) from {self.name}")
        self._count(f"as of '{first}' select count(*) from {self.name}")
        return first

    def _overwrites(self, first: int) -> None:
        self._do(f"insert overwrite table {self.name} select * from store_sales")
        self._count(f"select count(*) from {self.name}")
        self._do(
            f"insert overwrite table {self.name} partition ({_ONE_DAY}) select {_DATA} from store_sales "
            f"where {_ONE_DAY}"
        )
        self._count(f"select count(*) from {self.name}")
        self._do(
            f"insert overwrite table {self.name} partition (ss_sold_date_sk='0905245') select {_DATA} "
            "from store_sales where ss_sold_date_sk='0905245' and ss_item_sk < 5000"
        )
        self._count(f"select count(*) from {self.name}")
        self._count(f"as of '{first}' select count(*) from {self.name}")
        self._snapshots()

    def _last_query(self) -> None:
        self._pruning(f"select * from {self.name} where ss_item_sk > 5000 and ss_sold_date_sk='0905245'")

    def _say(self, statement: str) -> None:
        self.out.print()
        self.out.print(Text.assemble(("sql> ", "bold cyan"), statement.replace(_DATA, "…")))

    def _do(self, statement: str) -> None:
        self._say(statement)
        self.lake.sql(statement)
        newest = self.lake.table(self.name).snapshots()[-1]
        added, deleted = (newest.summary.get(f"{word}-data-files", "0") for word in ("added", "deleted"))
        self.out.print(f"  snapshot {newest.snapshot_id}: {added} files added, {deleted} deleted")

    def _count(self, statement: str) -> None:
        self._say(statement)
        self.out.print(f"  {self.lake.sql(statement).collect()[0][0]} rows")

    def _pruning(self, statement: str) -> None:
        self._say(f"explain {statement}")
        plan = self.lake.sql(f"explain {statement}").collect()[0][0].partition("== Managed scan")[2]
        for line in plan.splitlines()[1:]:
            self.out.print(f"  {line}", markup=False, highlight=False)

    def _snapshots(self) -> None:
        query = f"select id, parentId, timeMillis, numAddedFiles, numDeletedFiles from `{self.name}$snapshots`"
        self._say(query)
        rows = self.lake.sql(query)
        drawn = Table(*rows.columns)
        for row in rows.collect():
            drawn.add_row(*map(str, row))
        self.out.print(drawn)
