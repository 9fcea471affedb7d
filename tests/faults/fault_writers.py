"""The processes of a fault run: writers, one that keeps the table up, and readers; all tell what they do.

What is told goes through a pipe, so that it stands when the process is killed. Only `time.monotonic_ns` orders what
different processes tell: the clocks of writers jump.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyiceberg.table.update as pyiceberg_update
from fault_commands import ACCOUNTS, START, TABLE, UPKEEP, WRITES, Maker
from planted_faults import planted
from pyiceberg.catalog import Catalog, load_catalog
from rows_in_files import Scanned

from lakeproof.errors import CommitUnknown, LakeproofError
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.tables import load_table

REAL_TIME, REAL_TIME_NS = time.time, time.time_ns
IMPATIENT_S, PATIENT_S = (0.05, 0.3), (0.4, 1.2)
JUMPS_S = (0, 0, 0.5, -0.5, 90, -90, 3600, -3600, 86_400)


class Post(NamedTuple):
    """Where a process works and what it is: all that it is started with."""

    uri: str
    warehouse: str
    first: int
    seed: int
    kinds: dict[str, int]
    planted: str = ""
    grace_s: float = 10.0


class Clock:
    """The time that a process takes for the time: the machine's, and an offset that jumps."""

    def __init__(self, chance: Random) -> None:
        self.chance, self.offset_s = chance, 0.0

    def maybe_jump(self) -> bool:
        """Now and then the clock jumps."""
        if self.chance.random() > 0.04:
            return False
        self.offset_s = self.chance.choice(JUMPS_S)
        return True

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Inside, this is what the process and its libraries are told."""
        clock = self

        class Now(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
                return datetime.fromtimestamp(REAL_TIME() + clock.offset_s, tz or UTC)

        time.time = lambda: REAL_TIME() + clock.offset_s
        time.time_ns = lambda: REAL_TIME_NS() + int(clock.offset_s * 1e9)
        kept = pyiceberg_update.datetime
        setattr(pyiceberg_update, "datetime", Now)  # noqa: B010 a type may not be assigned
        try:
            yield
        finally:
            time.time, time.time_ns = REAL_TIME, REAL_TIME_NS
            setattr(pyiceberg_update, "datetime", kept)  # noqa: B010


class Teller:
    """Tells the run's log."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe

    def __call__(self, **told: Any) -> None:
        self.pipe.send_bytes(json.dumps({"t": time.monotonic_ns(), **told}).encode())


def how_it_ended(run: Callable[[], Any]) -> dict[str, Any]:
    """What a command's end says, as the log has it."""
    try:
        done = run()
    except CommitUnknown as error:
        return {"how": "unknown", "error": f"{error} <- {error.__cause__!r}"}
    except LakeproofError as error:
        return {"how": "refused", "error": f"{type(error).__name__}: {error}"}
    except Exception as error:
        return {"how": "raw", "error": f"{error!r} {where(error)}"}
    snapshot = getattr(done, "snapshot_id", None)
    return {"how": "ok" if snapshot is not None else "nothing", "snapshot": snapshot}


def where(error: Exception) -> str:
    """The lines of the package that an error came through, the last first."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "lakeproof" in frame.filename]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[::-1][:12])


def waits_for_catalog(post: Post, ended: dict[str, Any]) -> bool:
    """Whether to ask a while later; a planted error has only seconds to show."""
    return not post.planted and str(ended["error"]).startswith("Unavailable")


def opened(uri: str, warehouse: str, stop: Any) -> Catalog | None:
    """The catalog, when it answers; `None`: the run is over."""
    while not stop.is_set():
        try:
            return open_catalog(uri, warehouse)
        except LakeproofError:
            time.sleep(0.2)
    return None


def write(post: Post, pipe: Connection, stop: Any, oldest_ms: Any) -> None:
    """Run commands until the run is over."""
    chance, tell = Random(post.seed), Teller(pipe)
    clock = Clock(chance)
    maker = Maker(chance, post.first, lambda: int(oldest_ms.value))
    with planted(post.planted), clock.in_force():
        catalog = opened(post.uri, post.warehouse, stop)
        while catalog is not None and not stop.is_set():
            if clock.maybe_jump():
                tell(e="jump", by=clock.offset_s)
            try:
                chosen = maker.chosen(post.kinds, catalog)
            except LakeproofError:  # the catalog or the storage did not answer to a look around
                time.sleep(0.1)
                continue
            except Exception as error:
                tell(e="fault", kind="raw error", what=f"a look around: {error!r}")
                continue
            if chosen is None:
                continue
            tell(e="begin", real_ms=REAL_TIME_NS() // 1_000_000, **chosen.told)
            command = chosen.command
            ended = how_it_ended(lambda: command.run(catalog, TABLE))  # noqa: B023
            tell(e="end", n=command.number, **ended)
            if ended["how"] == "refused":  # as whoever runs it again would
                time.sleep(chance.uniform(*(PATIENT_S if waits_for_catalog(post, ended) else IMPATIENT_S)))


def read(post: Post, pipe: Connection, stop: Any, _oldest_ms: Any) -> None:
    """Read retained snapshots, through PyIceberg and through our own planning, and judge what is seen."""
    chance, tell = Random(post.seed), Teller(pipe)
    ours = opened(post.uri, post.warehouse, stop)
    theirs: Catalog | None = None
    while ours is not None and not stop.is_set():
        try:
            theirs = theirs or _as_pyiceberg_opens_it(post)
            table = load_table(ours, TABLE) if chance.random() < 0.5 else theirs.load_table(TABLE)
            snapshot = chance.choice([table.metadata.current_snapshot(), *table.metadata.snapshots[-5:]])
        except Exception:  # the catalog does not answer: that is no reader's error
            time.sleep(0.1)
            continue
        assert snapshot is not None
        wrong = _wrong_in(theirs, snapshot.snapshot_id, chance)
        if wrong:
            tell(e="fault", kind="unreadable" if "Error" in wrong else "wrong sum", what=f"a reader: {wrong}")
        tell(e="read", snapshot=snapshot.snapshot_id)
        time.sleep(0.1)


def _as_pyiceberg_opens_it(post: Post) -> Catalog:
    if post.uri.startswith("http"):
        return load_catalog("lakeproof", type="rest", uri=post.uri)
    return load_catalog("lakeproof", type="sql", uri=post.uri, warehouse=f"file://{post.warehouse}")


def _wrong_in(catalog: Catalog, snapshot_id: int, chance: Random) -> str:
    """What is wrong with a snapshot; nothing, where it was expired while it was read."""
    through_us = chance.random() < 0.5
    for attempt in (1, 2, 3):
        while True:
            try:
                table = catalog.load_table(TABLE)
                break
            except Exception:
                time.sleep(0.2)
        if table.snapshot_by_id(snapshot_id) is None:
            return ""
        try:
            if through_us and snapshot_id == table.metadata.current_snapshot_id:
                rows = [row for _, _, row in Scanned(table, 0).rows]
            else:
                rows = rows_at(table, snapshot_id, "p = 0")
            return wrong_accounts(rows, f"snapshot {snapshot_id}")
        except Exception as error:
            if attempt == 3:
                return f"snapshot {snapshot_id}: {error!r} (an Error)"
            time.sleep(0.3)  # it may have been expired just now: the catalog says so in the next round
    return ""


def rows_at(table: Any, snapshot_id: int | None = None, row_filter: str = "p >= 0") -> list[tuple[int, int, int]]:
    """The rows of a snapshot as PyIceberg reads them."""
    read: pa.Table = table.scan(row_filter=row_filter, snapshot_id=snapshot_id).to_arrow()
    return list(zip(*(read[name].to_pylist() for name in ("id", "p", "v")), strict=True))


def wrong_accounts(rows: list[tuple[int, int, int]], place: str) -> str:
    """What is wrong with the accounts in these rows."""
    accounts = [row for row in rows if row[1] == 0]
    if sorted(row[0] for row in accounts) != list(ACCOUNTS):
        return f"{place} has the accounts {sorted(row[0] for row in accounts)}"
    total = sum(row[2] for row in accounts)
    return "" if total == START * len(ACCOUNTS) else f"{place} has the sum {total}"


KINDS_OF_ROLES = {"writer": WRITES, "upkeep": UPKEEP, "reader": {}}
