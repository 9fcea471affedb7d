"""Streams from and to managed tables on real Spark: what is read, what is refused, and each batch once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from stream_runs import die_before_the_checkpoint_knew, epochs, finish, numbers, read, run

from lakeproof.errors import InvalidInput
from lakeproof.format import StreamBatch
from lakeproof.iceberg.committing import window as loading
from lakeproof.iceberg.history import stream_positions
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.spark.lake import Lake
from lakeproof.spark.streams import sink as sinks

pytestmark = pytest.mark.spark
EVER = "timestamp '2999-01-01'"


@pytest.fixture
def pair(lake: Lake, name: str) -> tuple[str, str]:
    """A source with two snapshots, and an empty sink."""
    source, sink = f"{name}_from", f"{name}_to"
    for table in (source, sink):
        lake.sql(f"create table {table} (id bigint, v string) using iceberg")
    lake.sql(f"insert into {source} values (1, 'a'), (2, 'b')")
    lake.sql(f"insert into {source} values (3, 'c')")
    return source, sink


def test_a_table_goes_through_to_another(lake: Lake, pair: tuple[str, str], tmp_path: Path) -> None:
    source, sink = pair
    rows = lake.spark.readStream.table(source)
    assert rows.isStreaming
    query = rows.where("id <> 2").writeStream.toTable(sink, checkpointLocation=str(tmp_path / "c"))
    query.processAllAvailable()
    assert numbers(lake, sink) == [1, 3]
    lake.sql(f"insert into {source} values (2, 'x'), (4, 'd')")
    lake.sql(f"call system.rewrite_data_files(table => '{source}', options => map('rewrite-all', 'true'))")
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    lake.sql(f"insert into {source} values (5, 'e')")
    run(lake, f"default.{source}", sink, tmp_path / "fresh")
    assert numbers(lake, sink) == [1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert [kind for kind, _ in epochs(lake, sink)] == ["append"] * 3
    table = lake.engine.load(f"default.{sink}")
    assert remove_orphan_files(table, older_than_ms=2**62, dry_run=True, allow_young=True).files == ()


def test_it_goes_on_from_its_checkpoint_in_limited_batches(lake: Lake, pair: tuple[str, str], tmp_path: Path) -> None:
    source, sink = pair
    limits: list[dict[str, Any]] = [{f"streaming_max_{what}_per_micro_batch": 1} for what in ("files", "rows")]
    for limit in limits:
        lake.sql(f"insert into {source} select /*+ repartition(2) */ * from values (7, 'x'), (8, 'y'), (9, 'z')")
        run(lake, f"default.{source}", sink, tmp_path / "c", **limit)
        assert numbers(lake, sink) == numbers(lake, source)
    assert len(epochs(lake, sink)) >= 4
    assert [epoch for _, epoch in epochs(lake, sink)] == [str(n) for n in range(len(epochs(lake, sink)))]


def test_complete_mode_replaces_the_rows(lake: Lake, pair: tuple[str, str], tmp_path: Path) -> None:
    source, sink = pair
    lake.sql(f"insert into {sink} values (99, 'before')")
    counted = read(lake, f"default.{source}", streaming_max_files_per_micro_batch=1).groupBy("v").agg(F.max("id"))
    run(lake, counted.toDF("v", "id"), sink, tmp_path / "c", "complete")
    assert numbers(lake, sink) == [1, 2, 3]
    lake.sql(f"insert into {source} values (10, 'a')")
    run(lake, counted.toDF("v", "id"), sink, tmp_path / "c", "complete")
    assert numbers(lake, sink) == [2, 3, 10]
    assert {kind for kind, _ in epochs(lake, sink)} == {"overwrite"}


@pytest.mark.parametrize("mode", ["append", "complete"])
def test_a_batch_that_is_committed_comes_again_in_vain(
    lake: Lake, pair: tuple[str, str], tmp_path: Path, mode: str
) -> None:
    source, sink = pair
    rows = read(lake, f"default.{source}")
    rows = rows.groupBy("id").agg(F.max("v").alias("v")) if mode == "complete" else rows
    run(lake, rows, sink, tmp_path / "c", mode)
    for told in (f"insert into {sink} values (50, 'other')", f"insert into {source} values (4, 'd')"):
        lake.sql(told)
        die_before_the_checkpoint_knew(tmp_path / "c")
        before = len(epochs(lake, sink))
        run(lake, rows, sink, tmp_path / "c", mode)
    other = [50] if mode == "append" else []
    assert numbers(lake, sink) == [1, 2, 3, 4, *other]
    assert len(epochs(lake, sink)) == before + 1


def test_two_queries_on_one_stream_and_one_table(lake: Lake, pair: tuple[str, str], tmp_path: Path) -> None:
    source, sink = pair
    rows = read(lake, f"default.{source}", streaming_max_files_per_micro_batch=1)
    writers = [rows.writeStream.trigger(availableNow=True) for _ in range(2)]
    queries = [each.toTable(sink, checkpointLocation=str(tmp_path / str(n))) for n, each in enumerate(writers)]
    for query in queries:
        finish(query)
    assert numbers(lake, sink) == [1, 1, 2, 2, 3, 3]


def test_a_stream_keeps_its_columns(lake: Lake, pair: tuple[str, str], tmp_path: Path) -> None:
    source, sink = pair
    rows = read(lake, f"default.{source}")
    lake.sql(f"alter table {source} rename column v to w")
    lake.sql(f"alter table {source} add column more int")
    lake.sql(f"insert into {source} values (4, 'd', 7)")
    run(lake, rows, sink, tmp_path / "c")
    assert [tuple(row) for row in lake.sql(f"select * from {sink} order by id").collect()][-1] == (4, "d")
    lake.sql(f"alter table {source} alter column more type bigint")
    late = read(lake, f"default.{source}")
    run(lake, late.select("id", F.col("w").alias("v")), sink, tmp_path / "d")
    assert numbers(lake, sink) == [1, 1, 2, 2, 3, 3, 4, 4]


def test_a_column_of_another_type_needs_the_stream_anew(lake: Lake, name: str, tmp_path: Path) -> None:
    for table in (name, f"{name}_to"):
        lake.sql(f"create table {table} (id int) using iceberg")
    lake.sql(f"insert into {name} values (1)")
    rows = read(lake, f"default.{name}")
    lake.sql(f"alter table {name} alter column id type bigint")
    with pytest.raises(StreamingQueryException, match="column `id` has become long since the stream was made"):
        run(lake, rows, f"{name}_to", tmp_path / "c")


def test_branches_are_read_and_written(lake: Lake, pair: tuple[str, str], tmp_path: Path) -> None:
    source, sink = pair
    lake.sql(f"alter table {source} create branch b")
    lake.sql(f"insert into {source} values (4, 'main')")
    lake.sql(f"insert into {source}.branch_b values (5, 'b')")
    lake.sql(f"insert into {sink} values (0, '')")
    lake.sql(f"alter table {sink} create branch b")
    for _ in range(2):
        run(lake, f"{source}.branch_b", f"{sink}.branch_b", tmp_path / "c")
        die_before_the_checkpoint_knew(tmp_path / "c")
    assert numbers(lake, f"{sink}.branch_b") == [0, 1, 2, 3, 5]
    assert numbers(lake, sink) == [0]


def test_snapshots_that_cannot_be_read_end_it_unless_passed_over(
    lake: Lake, pair: tuple[str, str], tmp_path: Path
) -> None:
    source, sink = pair
    lake.sql(f"update {source} set v = 'x' where id = 1")
    lake.sql(f"insert into {source} values (4, 'd')")
    with pytest.raises(StreamingQueryException, match="which overwrote rows"):
        run(lake, f"default.{source}", sink, tmp_path / "c")
    assert numbers(lake, sink) == [1, 2, 3]
    run(lake, f"default.{source}", sink, tmp_path / "c", streaming_skip_overwrite_snapshots="true")
    assert numbers(lake, sink) == [1, 2, 3, 4]


def test_a_stream_begins_at_an_instant(lake: Lake, pair: tuple[str, str], tmp_path: Path) -> None:
    source, sink = pair
    second = lake.table(source).snapshots()[1]
    run(lake, f"default.{source}", sink, tmp_path / "c", stream_from_timestamp=second.timestamp_ms)
    assert numbers(lake, sink) == [3]


def test_an_expired_start_is_told_in_a_sentence(lake: Lake, pair: tuple[str, str], tmp_path: Path) -> None:
    source, sink = pair
    run(lake, f"default.{source}", sink, tmp_path / "c")
    lake.sql(f"insert into {source} values (4, 'd')")
    lake.sql(f"call system.expire_snapshots(table => '{source}', older_than => {EVER}, retain_last => 1)")
    with pytest.raises(StreamingQueryException, match=r"the stream stands at snapshot .*, which was expired"):
        run(lake, f"default.{source}", sink, tmp_path / "c")


def test_whether_an_expired_batch_was_committed_nobody_guesses(
    lake: Lake, pair: tuple[str, str], tmp_path: Path
) -> None:
    source, sink = pair
    run(lake, f"default.{source}", sink, tmp_path / "c")
    lake.sql(f"insert into {sink} values (50, '')")
    expire = f"call system.expire_snapshots(table => '{sink}', older_than => {EVER}, retain_last => 1)"
    lake.sql(expire)
    lake.sql(f"insert into {source} values (4, 'd')")
    run(lake, f"default.{source}", sink, tmp_path / "c")  # the checkpoint says that this batch is new
    assert numbers(lake, sink) == [1, 2, 3, 4, 50]
    die_before_the_checkpoint_knew(tmp_path / "c")
    lake.sql(f"insert into {sink} values (51, '')")
    lake.sql(expire)
    with pytest.raises(StreamingQueryException, match=r"nobody can tell whether batch 1 of query .* was committed"):
        run(lake, f"default.{source}", sink, tmp_path / "c")
    assert numbers(lake, sink) == [1, 2, 3, 4, 50, 51]


def test_a_checkpoint_in_the_folder_of_the_session_is_known(lake: Lake, pair: tuple[str, str], tmp_path: Path) -> None:
    source, sink = pair

    def again() -> None:
        query = lake.spark.readStream.table(source).writeStream.queryName("known").trigger(availableNow=True)
        finish(query.toTable(sink))

    with pytest.raises(InvalidInput, match="a stream into a table needs a checkpoint"):
        again()
    lake.spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path))
    try:
        again()
        die_before_the_checkpoint_knew(tmp_path / "known")
        again()
        assert numbers(lake, sink) == [1, 2, 3]
        die_before_the_checkpoint_knew(tmp_path / "known")
        lake.sql(f"insert into {sink} values (50, '')")
        lake.sql(f"call system.expire_snapshots(table => '{sink}', older_than => {EVER}, retain_last => 1)")
        with pytest.raises(StreamingQueryException, match=r"nobody can tell whether batch 0 of query .* was committed"):
            again()
    finally:
        lake.spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert numbers(lake, sink) == [1, 2, 3, 50]


# ---------------------------------------------------------------- planted errors


def not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "branch_has_batch", lambda *given: False)


def only_in_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    real = loading.unseen_snapshots
    newest = lambda *given, **how: (lambda found: found._replace(unseen=found.unseen[-1:]))(real(*given, **how))  # noqa: E731
    monkeypatch.setattr(loading, "unseen_snapshots", newest)


def of_any_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamBatch, "comes_after", lambda self, other: self.epoch >= other.epoch)


def skips_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    real = stream_positions._to_read

    def planted(table: Any, line: Any, start: Any, *rest: Any) -> Any:
        found = list(real(table, line, start, *rest))
        yield from found[:1] + found[2:] if start is not None else found

    monkeypatch.setattr(stream_positions, "_to_read", planted)


PLANTED: list[Callable[[pytest.MonkeyPatch], None]] = [
    *(not_looked_for, only_in_the_newest, of_any_query, skips_a_snapshot)
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_planted_errors_are_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    lake: Lake,
    pair: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the tests above do in small: two queries, a death after the commit, others between, new rows."""
    source, sink = pair
    plant(monkeypatch)
    for query in ("c", "d"):
        run(lake, f"default.{source}", sink, tmp_path / query)
    lake.sql(f"insert into {sink} values (50, '')")
    die_before_the_checkpoint_knew(tmp_path / "d")
    lake.sql(f"insert into {source} values (4, 'd')")
    lake.sql(f"insert into {source} values (5, 'e')")
    run(lake, f"default.{source}", sink, tmp_path / "d")
    assert numbers(lake, sink) != [1, 1, 2, 2, 3, 3, 4, 5, 50]


# ---------------------------------------------------------------- what is refused


def test_bad_input_is_one_sentence(lake: Lake, pair: tuple[str, str], tmp_path: Path) -> None:
    source, sink = pair
    spark = lake.spark
    rows = spark.readStream.table(source)
    lake.sql(f"alter table {source} create tag old")

    def write(stream: Any = rows, to: str = sink, **options: str) -> Any:
        return lambda: stream.writeStream.options(checkpointLocation=str(tmp_path), **options).toTable(to)

    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: spark.readStream.option("split-size", "1").table(source), "read option `split-size` is not supported"),
        (lambda: read(lake, f"default.{source}", stream_from_timestamp="soon"), "must be a whole number from 0 on"),
        (lambda: read(lake, f"default.{source}", streaming_max_files_per_micro_batch=0), "a whole number from 1 on"),
        (lambda: read(lake, f"default.{source}", streaming_skip_delete_snapshots="1"), "must be true or false"),
        (lambda: read(lake, "default.nobody"), "there is no table `default.nobody`"),
        (lambda: read(lake, "/tmp/folder"), "a managed table is named, not its folder"),
        (lambda: spark.readStream.format("iceberg").load(), "a stream names a managed table"),
        (lambda: spark.readStream.schema("id int").table(source), "a managed table has its own schema"),
        (lambda: spark.readStream.table(f"{source}.files"), "a metadata table is no stream"),
        (lambda: spark.readStream.table(f"{source}.tag_old"), "the tag `old` never changes, and is no stream"),
        (write(target="1"), "write option `target` is not supported"),
        (lambda: rows.writeStream.queryName("q").toTable(sink), "a stream into a table needs a checkpoint"),
        (write(**{"fanout-enabled": "maybe"}), "`fanout-enabled` must be true or false"),
        (write(rows.select("id")), "the rows have the columns id"),
        (write(to=f"{sink}.files"), "a metadata table is no stream"),
        (lambda: rows.writeStream.format("iceberg").toTable("default.nobody"), "there is no table `default.nobody`"),
        (lambda: rows.writeStream.outputMode("update").toTable(sink), "the output mode update is not supported"),
        (lambda: rows.writeStream.partitionBy("id").toTable(sink), "partitionBy cannot change its partitions"),
    ]
    for call, said in cases:
        with pytest.raises(InvalidInput, match=said):
            call()


def test_fanout_is_taken_and_a_path_names_the_table(lake: Lake, pair: tuple[str, str], tmp_path: Path) -> None:
    source, sink = pair
    writer = lake.spark.readStream.table(source).writeStream.format("iceberg").trigger(availableNow=True)
    options = {"fanout-enabled": "true", "path": f"default.{sink}", "checkpointLocation": str(tmp_path)}
    finish(writer.options(**options).start())
    assert numbers(lake, sink) == [1, 2, 3]


def test_batches_are_not_staged_under_one_id(lake: Lake, pair: tuple[str, str], tmp_path: Path) -> None:
    source, sink = pair
    lake.sql(f"alter table {sink} set tblproperties ('write.wap.enabled' = 'true')")
    rows = lake.spark.readStream.table(source)
    lake.spark.conf.set("spark.wap.id", "one")
    try:
        with pytest.raises(InvalidInput, match="a stream cannot stage its batches under one id"):
            rows.writeStream.toTable(sink, checkpointLocation=str(tmp_path))
    finally:
        lake.spark.conf.unset("spark.wap.id")
    lake.spark.conf.set("spark.wap.branch", "audited")
    try:
        run(lake, rows, sink, tmp_path)
    finally:
        lake.spark.conf.unset("spark.wap.branch")
    assert (numbers(lake, sink), numbers(lake, f"{sink}.branch_audited")) == ([], [1, 2, 3])
