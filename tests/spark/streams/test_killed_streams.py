"""Streams whose process dies by SIGKILL: at each moment around the commit, and at random ones; every row is there once.

`LAKEPROOF_STREAM_KILLS` says how often the running stream is killed, `LAKEPROOF_STREAM_SECONDS` how long a stream runs
beside an UPDATE loop and compaction.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from stream_runs import epochs, numbers, read, run

from lakeproof.audit.audit import audit
from lakeproof.audit.deep import Depth
from lakeproof.commit.policy_text import named_policy
from lakeproof.errors import CommitConflict
from lakeproof.iceberg.committing.commit import PHASES
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.spark.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]
HERE = Path(__file__).parent
KILLS = int(os.environ.get("LAKEPROOF_STREAM_KILLS", "2"))
SECONDS = float(os.environ.get("LAKEPROOF_STREAM_SECONDS", "6"))
SEED = int(os.environ.get("LAKEPROOF_STREAM_SEED", "1"))


def made(lake: Lake, *tables: str) -> None:
    for table in tables:
        lake.sql(f"create table {table} (id bigint, v string) using iceberg")


@contextmanager
def process(warehouse: Path, **told: Any) -> Iterator[subprocess.Popen[str]]:
    """Another process with a session of its own; it ends by SIGKILL, its JVM with it."""
    started = subprocess.Popen(
        [sys.executable, str(HERE / "streaming_process.py"), f"sqlite:///{warehouse}/catalog.db", str(warehouse)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert started.stdin is not None
    try:
        print(json.dumps(told), file=started.stdin, flush=True)
        yield started
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        assert started.wait(30) == -signal.SIGKILL


def said(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    return started.stdout.readline().strip()


def test_killed_at_every_moment_around_the_commit(lake: Lake, name: str, warehouse: Path, tmp_path: Path) -> None:
    source = f"default.{name}"
    made(lake, source)
    for number in range(3):
        lake.sql(f"insert into {source} values ({number}, 'a')")
    cells = [(phase, source, f"default.{name}_{n}", str(tmp_path / str(n))) for n, phase in enumerate(PHASES)]
    made(lake, *(sink for _, _, sink, _ in cells))
    with process(warehouse, standing=cells) as standing:
        assert json.loads(said(standing)) == [True] * len(PHASES)
    for phase, _, sink, checkpoint in cells:
        assert numbers(lake, sink) == ([0, 1] if phase == PHASES[-1] else [0]), phase
        run(lake, source, sink, Path(checkpoint))
        assert numbers(lake, sink) == [0, 1, 2], phase
        assert [epoch for _, epoch in epochs(lake, sink)] == ["0", "1", "2"][: len(epochs(lake, sink))]
        table = lake.engine.load(sink)
        remove_orphan_files(table, older_than_ms=2**62, allow_young=True)
        assert numbers(lake, sink) == [0, 1, 2], phase


def until(reached: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not reached() and time.monotonic() < end:
        time.sleep(0.2)
    return reached()


def test_killed_at_random_moments(lake: Lake, name: str, warehouse: Path, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    source, sink, checkpoint = f"default.{name}", f"default.{name}_to", tmp_path / "c"
    made(lake, source, sink)
    written = 0
    for _ in range(KILLS):
        with process(warehouse, running=[source, sink, str(checkpoint)]) as streaming:
            assert said(streaming) == "streaming"
            before, end = len(epochs(lake, sink)), time.monotonic() + 60
            while len(epochs(lake, sink)) < before + chance.choice([2, 3]) and time.monotonic() < end:
                for number in range(written, written + 3):
                    lake.sql(f"insert into {source} values ({number}, 'a')")
                written += 3
            assert len(epochs(lake, sink)) > before, "the stream was killed in the middle"
            time.sleep(chance.random())
    run(lake, source, sink, checkpoint)
    assert numbers(lake, sink) == list(range(written))
    assert len({epoch for _, epoch in epochs(lake, sink)}) == len(epochs(lake, sink))


def test_beside_an_update_loop_and_compaction(lake: Lake, name: str, tmp_path: Path) -> None:
    """The sink is updated and compacted while the stream writes it; the source is compacted while it is read."""
    source, sink = f"default.{name}", f"default.{name}_to"
    made(lake, source, sink)
    patient = "'write.update.mode' = 'merge-on-read', 'lakeproof.max-reruns' = '20'"  # an UPDATE sees the new rows
    lake.sql(f"alter table {sink} set tblproperties ({patient})")
    rows = read(lake, source, streaming_max_files_per_micro_batch=2)
    query = rows.writeStream.toTable(sink, checkpointLocation=str(tmp_path / "c"))
    written, errors, end = 0, list[BaseException](), time.monotonic() + SECONDS
    done, given_up = {"updates": 0, "compactions": 0}, 0

    def loop(what: str, *texts: str) -> None:
        nonlocal given_up
        while time.monotonic() < end and not errors:
            for text in texts:
                try:
                    lake.sql(text)
                    done[what] += 1
                except CommitConflict:  # new rows came faster than it could run again: whoever wants it asks again
                    given_up += 1
                except Exception as error:
                    errors.append(error)

    compact = [
        f"call system.rewrite_data_files(table => '{each}', options => map('rewrite-all', 'true'))"
        for each in (sink, source)
    ]
    update = f"update {sink} set v = concat(v, 'u') where id % 7 = 0"
    others = [threading.Thread(target=loop, args=each) for each in (("updates", update), ("compactions", *compact))]
    for other in others:
        other.start()
    while time.monotonic() < end:
        lake.sql(f"insert into {source} values ({written}, ''), ({written + 1}, '')")
        written += 2
    for other in others:
        other.join()
    query.processAllAvailable()
    query.stop()
    assert errors == []
    assert numbers(lake, sink) == list(range(written))
    assert min(done.values()) > 0
    assert given_up <= sum(done.values())
    assert written > 2
    policy = named_policy("lakeproof")
    for table in (source, sink):
        found = audit(lake.engine.load(table), policy, name=table, orphans=False, depth=Depth(footers=True))
        assert found.findings == ()
