"""The reference page of the SQL that managed tables know; procedures and views come from the code."""

# ruff: noqa: E501  (a line of a Markdown table cannot be broken)

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from lakeproof.iceberg.format_v3.lineage import LAST_UPDATED, ROW_ID
from lakeproof.iceberg.metadata_tables.metadata_tables import METADATA_TABLES, OF_A_SNAPSHOT
from lakeproof.iceberg.tables.metadata_views import VIEWS
from lakeproof.spark.procedures.all_procedures import PROCEDURES
from lakeproof.spark.procedures.calling import Procedure
from lakeproof.spark.reading.metadata_columns import METADATA_COLUMNS

LIST = Path(__file__).resolve().parent.parent / "tests" / "iceberg_sql"
sys.path.insert(0, str(LIST))

from comparing import read_reasons  # noqa: E402  (the list of statements is beside its tests)
from statement_list import read_chapters  # noqa: E402

PATH = "docs/reference/sql.md"

BEFORE = """\
# SQL

Through `lake.sql(…)`, `lakeproof sql`, and plain `spark.sql(…)` on a connected session. A statement on a managed table
is run here; every other statement goes to Spark as it was written, so `msck repair table`, `set …`, `create view` and
Spark's own tables work as ever.

A table is managed if it was created `using iceberg`, or with the option `addTableManagement 'true'`.

## Tables

| statement | |
|---|---|
| `create table [if not exists] t (…) using iceberg` | or `using parquet` or `using orc` with `options (addTableManagement 'true')`; also `partitioned by`, `tblproperties`, `location`, `comment` |
| `create table t using iceberg as select …` | the table and its first snapshot, or neither |
| `create or replace table t … [as select …]`, `replace table t …` | the same table anew, in one commit: its old snapshots stay readable by id, the new head has no parent; a query may read the table that it replaces |
| `create table t like u` | columns, partitioning, order and properties of a managed table |
| `drop table [if exists] t [purge]` | `purge` removes the files too |
| `alter table t add column c int [default 7] [first or after d]` | new columns have their default in old rows (format version 3), else null |
| `alter table t rename column c to d`, `drop column c` | by field id: old files need no rewrite |
| `alter table t alter column c type bigint` | widening: int to bigint, float to double, more digits of a decimal; also `comment`, `first`, `after`, `drop not null`; several columns with commas |
| `alter table t alter column c set default 8`, `drop default` | of new rows alone (format version 3) |
| `alter table t replace columns (…)` | new columns; what the old ones held is not theirs |
| `alter table t write [locally] ordered by …`, `write distributed by partition`, `write unordered` | how new files are sorted, and how rows are spread over tasks |
| `alter table t set identifier fields c`, `drop identifier fields c` | columns that are `not null` |
| `alter table t set location '…'` | new files only |
| `alter table t set tblproperties (…)`, `unset tblproperties (…)` | |
| `alter table t rename to u` | |
| `alter table t add partition field day(ts)` | also `drop` and `replace … with …`: new files only |
| `alter table t create branch b`, `create tag g [as of version N] [retain 7 days]` | also `create or replace`, `replace` (what is not said stays), `if not exists`, `drop branch b`, `drop tag g`; of branches `with snapshot retention 2 snapshots 3 days` |
| `describe [extended] t`, `describe t c`, `show tables`, `show table extended like 't*'`, `show partitions t`, `show create table t`, `show columns in t`, `show tblproperties t`, `comment on table t is '…'`, `refresh table t` | |
| `truncate table t` | a snapshot without rows |

Partition transforms: `years(c)`, `months(c)`, `days(c)`, `hours(c)`, `bucket(n, c)`, `truncate(n, c)`, or a column
itself. Options: `path`, `addTableManagement`, `columnDependencies`; others are properties of the table.

In format version 3 a column may have a default, in `create table` too: `c int default 7`. It is a constant, which INSERT
(with a list of columns, or with the word DEFAULT), UPDATE and MERGE store. Refused with a sentence: defaults in older
versions, of lists, maps and structs and of fields inside them, of NaN, and expressions such as `current_date()`.

Refused with the reason: `clustered by … into … buckets`, generated columns and constraints, types that Iceberg lacks,
files written as anything but Parquet or ORC.

## Rows

| statement | |
|---|---|
| `insert into t values …` or `select …` | one snapshot; columns by position or by name |
| `insert into t partition (p = 'v') select …` | |
| `insert overwrite table t …` | the whole table, or one partition with `partition (p = 'v')`, or those that are written if `spark.sql.sources.partitionOverwriteMode` is `dynamic` |
| `update t set c = … where …` | any condition, subqueries too |
| `delete from t where …` | where whole files match, only metadata changes |
| `merge into t using s on … when matched … when not matched … when not matched by source …` | update, delete, insert, each with a condition; two source rows for one target row are an error; `merge with schema evolution` adds the columns that it writes first, as a change of its own |

A writer of DataFrames may be told `option("branch", "b")`, `option("snapshot-property.NAME", "…")` and, where the table
has `write.spark.accept-any-schema` set to true, `option("mergeSchema", "true")`; `format("iceberg").save("t")` is
`saveAsTable("t")`. `writeTo("t").overwrite(condition)` replaces what matches, in whole files; what it writes may lie outside.
Every other option of a reader or a writer is refused, and so are partitions and buckets that a table which is there does
not have. Settings of the session that begin with `spark.sql.iceberg.` and say what is written (`snapshot-property.NAME`,
`merge-schema`, `compression-codec`, `distribution-mode`, `check-nullability`) refuse the write; those that say how rows are read
change nothing.

How they write and what they promise is set on the table: `write.delete.mode`, `write.update.mode`, `write.merge.mode`
(`copy-on-write`, the default, or `merge-on-read`), and `write.delete.isolation-level` and its siblings (`serializable`,
the default, or `snapshot`).

A branch is written and read by its name: `t.branch_b` stands for the table in every statement of this section, and in
queries. A commit on a branch is checked against what others committed on that branch, and on no other. Writes are staged
where the table has `write.wap.enabled` set to true: with `spark.wap.branch` the session reads and writes that branch, which
begins at main's head if it is not there; with `spark.wap.id` each snapshot waits under that id, and no branch moves.
`call system.fast_forward` brings a branch to main, `publish_changes` and `cherrypick_snapshot` a snapshot: as itself where
main is what it stands on, else as a new snapshot if it only added rows, or replaced partitions that nobody has changed.

## Queries

Any query of Spark. Partition and statistics pruning, inferred predicates and schema evolution happen inside Spark's own
planner. `count(*)`, `min` and `max` are answered from metadata where that is certain.

| form | reads |
|---|---|
| `as of '2026-01-31 12:00:00' select …` | every managed table in the statement as it was then; epoch milliseconds work too |
| `select … from t timestamp as of '…'` | one table as it was |
| `select … from t version as of N` | a snapshot by id, or a branch or tag by name in quotes |
| `select … from t.branch_b`, `t.tag_g`, `t.snapshot_id_N`, `t.at_timestamp_N` | a branch, a tag, a snapshot, or the table as it was at epoch milliseconds |
| `spark.read.option(name, value)` | `versionAsOf`, `timestampAsOf`, `branch`, `tag`, `snapshot-id`, `as-of-timestamp`; with `start-snapshot-id` and `end-snapshot-id` the rows appended between two snapshots |
| `system.bucket(n, c)`, `truncate(n, c)`, `years(c)`, `months(c)`, `days(c)`, `hours(c)` | Iceberg's transforms as functions |
| `explain select …` | Spark's plan, and of each managed scan: filter, inferred predicates, files and bytes kept |
"""

PROPERTIES = """\
## Streams

`spark.readStream.table("t")` and `format("iceberg").load("namespace.t")` read, `writeStream.toTable("t")` and
`format("iceberg").start("namespace.t")` write; [the page on streams](../how-to/stream.md) has an example.

| option of a reader | |
|---|---|
| `stream-from-timestamp` | begin with the first snapshot at or after these epoch milliseconds; else with the oldest one |
| `streaming-skip-overwrite-snapshots`, `streaming-skip-delete-snapshots` | pass over snapshots that overwrote or deleted rows; else the stream ends there |
| `streaming-max-files-per-micro-batch`, `streaming-max-rows-per-micro-batch` | how much a batch holds: the file that reaches the rows is its last |

| option of a writer | |
|---|---|
| `checkpointLocation`, `path` | where Spark keeps what the query has done, which must be said here or by `spark.sql.streaming.checkpointLocation` and `queryName`; the table's name, for `start()` |
| `fanout-enabled` | taken: several partitions are open at a time anyway |

Refused with the reason: other options, the output mode `update`, `partitionBy`, continuous triggers, a schema of one's own,
metadata tables, and a sink under `spark.wap.id`.

## Table properties

| property | default | |
|---|---|---|
| `lakeproof.policy` | `lakeproof` | whose [checks](checks-and-policies.md) a commit must pass |
| `lakeproof.max-reruns` | 5 | how often a command runs again before a conflict reaches you; 0 aborts as Iceberg does |
| `write.delete.mode`, `write.update.mode`, `write.merge.mode` | `copy-on-write` | |
| `write.delete.isolation-level`, `write.update.isolation-level`, `write.merge.isolation-level` | `serializable` | |
| `format-version` | 2 | 1, 2 or 3; a table is upgraded in place by `alter table … set tblproperties`, and never goes back |
| `write.parquet.compression-codec`, `write.parquet.compression-level` | `zstd`, 3 | the level is one of zstd |
| `write.parquet.row-group-size-bytes`, `write.parquet.page-size-bytes`, `write.parquet.page-row-limit`, `write.parquet.dict-size-bytes` | 128 MB, 1 MB, 20,000, 1 MB | of files that Spark writes |
| `write.parquet.bloom-filter-enabled.column.C`, `write.parquet.bloom-filter-fpp.column.C`, `write.parquet.bloom-filter-ndv.column.C`, `write.parquet.bloom-filter-max-bytes` | false, 0.01, as they come, 1 MB | of files that Spark writes; a table with FLOAT or DOUBLE columns is read without them |
| `write.target-file-size-bytes` | 512 MB | of compaction |
| `write.metadata.metrics.default`, `write.metadata.metrics.column.C` | `truncate(16)` | which statistics files have |
| `commit.retry.num-retries`, `commit.retry.min-wait-ms`, `commit.retry.max-wait-ms`, `commit.retry.total-timeout-ms` | no limit, 100 ms, 1 min, 30 min | how often and how long a lost swap is tried again |
| `commit.manifest-merge.enabled`, `commit.manifest.min-count-to-merge`, `commit.manifest.target-size-bytes` | true, 100, 8 MB | |
| `write.metadata.delete-after-commit.enabled` | false | |
| `gc.enabled` | true | false: expiry removes no file |

Refused where they are set, since nothing here would honour them: `encryption.key-id`, `write.location-provider.impl`,
`write.object-storage.enabled`. Properties that say how others read are kept and change nothing.

Rows with lists or maps, and a few rows at a time, are written by Arrow, which takes the codec and the level and chooses
the sizes itself. A column whose values did not repeat in files of 20,000 rows or more that the table has is written
without trying a dictionary first, which Parquet's writer would throw away; one that begins to repeat has a dictionary
again.

## What a snapshot records

Beside Iceberg's counters, a snapshot's summary says which command made it: `lakeproof.command-id`,
`lakeproof.command`, `lakeproof.read-snapshot-id`, `lakeproof.isolation`, `lakeproof.policy`,
`lakeproof.conflict-filter`; `lakeproof.reruns` and `lakeproof.retries` where it ran again or lost swaps. That is what
`lakeproof audit` judges by.
"""


STATEMENTS = """\
## Iceberg's own SQL, statement by statement

What Apache Iceberg's pages show, as {count} runnable cases, each answered by Apache Iceberg 1.12 on Spark 4.1 and by
Lakeproof: {counts}. *As there*: columns, types and rows are the same, or both refuse. *Besides*: Apache Iceberg refuses it.
`{{snap:e:1}}` stands for the id of the first snapshot of `e`, and so on.
"""
_ANSWERS = {"equal": "as there", "beyond": "besides", "differs": "another answer", "refused": "refused", "raw": "fails"}


def statements() -> list[str]:
    """Every case of the list with its answer, and the reason where it is not Apache Iceberg's."""
    standing = json.loads((LIST / "standing.json").read_text(encoding="utf-8"))
    reasons = read_reasons()
    counted = Counter(verdict for verdict, _ in standing.values())
    counts = ", ".join(f"{counted[each]} {_ANSWERS[each]}" for each in _ANSWERS if counted[each])
    lines = [STATEMENTS.format(count=len(standing), counts=counts)]
    for chapter in read_chapters():
        lines += [f"### {chapter.name.capitalize()}\n", "| statement | answer |", "|---|---|"]
        for case in chapter.cases:
            verdict, said = standing[str(case.number)]
            why = reasons.get(case.number or 0, "") if verdict != "equal" else f"refused: {said}" if said else ""
            answer = _ANSWERS[verdict] + (f": {why or said}" if why or said else "")
            lines.append(f"| {_code(case.text)} | {_cell(answer)} |")
        lines.append("")
    return lines


def _code(text: str) -> str:
    """A statement in a cell of a table."""
    text = text if len(text) <= 160 else f"{text[:157]}…"
    return f"`` {_cell(text)} ``" if "`" in text else f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("](", "] (")  # which would be a link


def page() -> tuple[str, str]:
    """The path of the page and its text."""
    views = ", ".join(f"`` `t${name}` ``" for name in VIEWS)
    parts = [
        BEFORE,
        "## Views of metadata\n",
        f"{views}. They join like any table. `` `t$snapshots` `` has `id`, `parentId` (-1 for the first), `timeMillis`, "
        "`numAddedFiles`, `numDeletedFiles`, `manifestListLocation`.\n",
        "## Metadata tables\n",
        f"{', '.join(f'`t.{name}`' for name in sorted(METADATA_TABLES))}: under the names, columns and types of Apache "
        "Iceberg, `readable_metrics` too. `t` may be `namespace.t`; a table of that name goes first. Of one snapshot, and so "
        f"with `version as of` and `timestamp as of`, are {', '.join(f'`{name}`' for name in sorted(OF_A_SNAPSHOT))}.\n",
        "## Metadata columns\n",
        f"{', '.join(f'`{each.name}`' for each in METADATA_COLUMNS)} in any query of `spark.sql` or `lake.sql`: where a row lies, and "
        "the partition of its file. `*` leaves them out, and a query that names none pays nothing. With `_deleted`, rows that "
        "a delete file removed are rows too, as in Apache Iceberg. A column of the table under such a name goes first.\n",
        f"`{ROW_ID}` and `{LAST_UPDATED}` are there from format version 3 on: the id of a row, and the number of the commit "
        "that changed it last. Both are null while an upgraded table has not been committed to.\n",
        "## Procedures\n",
        "`call system.name(…)`, arguments by position or as `name => value`; those in brackets may be left out. "
        "A value that is no literal is computed.\n",
        "| procedure | gives |",
        "|---|---|",
        *(f"| `{name}({_arguments(one)})` | {_result(one)} |" for name, one in sorted(PROCEDURES.items())),
        "",
        PROPERTIES,
        *statements(),
    ]
    return PATH, "\n".join(parts)


def _arguments(procedure: Procedure) -> str:
    return ", ".join(f"[{name[:-1]}]" if name.endswith("?") else name for name in procedure.parameters)


def _result(procedure: Procedure) -> str:
    return ", ".join(f"`{name}`" for name, _ in procedure.result) or "nothing"
