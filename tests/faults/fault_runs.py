"""A run: processes are started, disturbed, killed and started anew; then the judge reads the table and the log."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fault_catalogs import CATALOGS, World
from fault_commands import (
    ACCOUNTS,
    FAST,
    JOURNAL,
    LEDGER,
    MERGED,
    NUMBERS_OF_ONE,
    OVERWRITTEN,
    START,
    TABLE,
    UPKEEP,
    WRITES,
)
from fault_history import Told, read_told
from fault_judge import Fault, Layout, Row, Table, judged
from fault_spark import run_spark
from fault_writers import Post, read, rows_at, write
from planted_faults import PLANTED
from pyiceberg.catalog import load_catalog
from rows_in_files import BY_P, SCHEMA
from rows_in_files import write as written

from lakeproof.iceberg.committing.whole_file_commits import append
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.tables import create_table

LAYOUT = Layout(ACCOUNTS, START, LEDGER, JOURNAL, MERGED, OVERWRITTEN)
DISK = "400m"
LATEST_ARRIVAL_S = 3.0
SLOWEST_START_S = 60.0


class Plan(NamedTuple):
    """What is run: on which catalog, for how long, by how many, in which weather."""

    catalog: str = "sqlite"
    seconds: float = 60
    seed: int = 0
    writers: int = 3
    readers: int = 1
    spark: bool = False
    planted: str = ""
    kinds: dict[str, int] = WRITES
    upkeep: dict[str, int] = UPKEEP
    pace_s: tuple[float, float] = (0.3, 1.5)
    calm_s: tuple[float, float] = (1.0, 5.0)
    grace_s: float = 15.0
    least: int = 0
    only: tuple[str, ...] = ()


class Figures(NamedTuple):
    """What happened in a run, and what the judge found."""

    plan: Plan
    told: Told
    disturbed: Counter[str]
    faults: tuple[Fault, ...]
    snapshots: int
    rows: int

    def count(self, how: str) -> int:
        """How many commands ended so."""
        return sum(record.how == how for record in self.told.records)

    def found(self, *kinds: str) -> int:
        """How many faults of these kinds the judge found."""
        return sum(fault.kind in kinds for fault in self.faults)

    def line(self) -> str:
        """The figures in one line."""
        commits = sum(record.how == "ok" for record in self.told.records)
        others = len(self.faults) - self.found("loss", "double", "wrong sum")
        return (
            f"{self.plan.catalog:<9}{self.plan.seconds / 60:5.1f} min  "
            f"{len(self.told.records)} commands, {commits} commits, "
            f"{self.disturbed['kills']} kills, {self.count('unknown')} unknowns, {self.told.reads} reads, "
            f"{self.found('loss')} losses, {self.found('double')} doubles, {self.found('wrong sum')} wrong sums, "
            f"{others} other faults, seed {self.plan.seed}"
        )

    def weather(self) -> str:
        """What was done to the processes, the catalog and the disk; how commands ended."""
        ends = Counter(record.how for record in self.told.records)
        done = ", ".join(f"{count} {name}" for name, count in sorted(self.disturbed.items()))
        return (
            f"{done}, {self.told.jumps} clock jumps; ends: {', '.join(f'{n} {how}' for how, n in sorted(ends.items()))}"
        )


class Post_(NamedTuple):
    """A process at its post."""

    process: Any
    role: str
    thread: threading.Thread


class Run:
    """One run under way."""

    def __init__(self, plan: Plan, world: World, folder: Path) -> None:
        self.plan, self.world, self.folder = plan, world, folder
        self.chance = Random(plan.seed)
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["fault_writers"])
        self.stop = self.context.Event()
        self.oldest_ms = self.context.Value("q", 0)
        self.lines: list[dict[str, Any]] = []
        self.posts: list[Post_] = []
        self.disturbed: Counter[str] = Counter()
        self.started = 0
        self.over = threading.Event()
        self.catalog_is_free = threading.Lock()

    # ---- processes

    def staff(self) -> None:
        """All processes are at their posts."""
        roles = ["writer"] * self.plan.writers + ["upkeep"] + ["reader"] * self.plan.readers
        for role in [*roles, *(["spark"] if self.plan.spark else [])]:
            self.post(role)

    def post(self, role: str) -> None:
        """One more process."""
        self.started += 1
        kinds = self.plan.upkeep if role == "upkeep" else self.plan.kinds
        seed = self.plan.seed * 1000 + self.started
        post = Post(self.world.uri, self.world.warehouse, self.started * NUMBERS_OF_ONE, seed, kinds, self.plan.planted)
        here, there = self.context.Pipe(duplex=False)
        runs = {"reader": read, "spark": run_spark}.get(role, write)
        process = self.context.Process(target=runs, args=(post, there, self.stop, self.oldest_ms), daemon=True)
        process.start()
        there.close()
        thread = threading.Thread(target=self._listen, args=(here,), daemon=True)
        thread.start()
        self.posts.append(Post_(process, role, thread))

    def _listen(self, pipe: Connection) -> None:
        with suppress(EOFError, OSError):
            while True:
                self.lines.append(json.loads(pipe.recv_bytes()))

    def kill(self, post: Post_) -> None:
        """The process dies here and now; another one takes its post when all is told."""
        if post.role == "spark":
            _kill_group(post.process.pid)
        post.process.kill()
        post.process.join()
        post.thread.join()
        self.posts.remove(post)

    # ---- disturbances

    def disturb(self) -> None:
        """One thing goes wrong."""
        servers = self.world.disturbances()
        choices = {"kills": 10, "stalls": 4, "full disks": 2, **dict.fromkeys(servers, 3)}
        choices = {name: weight for name, weight in choices.items() if name in (self.plan.only or choices)}
        what = self.chance.choices(list(choices), list(choices.values()))[0]
        seconds = self.chance.uniform(0.2, 2.5)
        if what == "kills":
            self._kill_somebody()
        elif what == "stalls":
            self._stall_somebody(seconds)
        else:
            does = servers.get(what, self._fill_disk)
            if not self.catalog_is_free.acquire(blocking=False):
                return
            calm = self.chance.uniform(*self.plan.calm_s)
            threading.Thread(target=self._for_a_while, args=(does, seconds, calm), daemon=True).start()
        self.disturbed[what] += 1

    def _for_a_while(self, does: Callable[[float], None], seconds: float, calm: float) -> None:
        """Then comes some calm: while the catalog does not answer, nothing is committed that could be lost."""
        try:
            does(seconds)
            self.over.wait(calm)
        finally:
            self.catalog_is_free.release()

    def _kill_somebody(self) -> None:
        rare = self.chance.random() < 0.05
        able = [post for post in self.posts if post.process.is_alive() and (post.role != "spark" or rare)]
        if able:
            post = self.chance.choice(able)
            self.kill(post)
            self.post(post.role)

    def _stall_somebody(self, seconds: float) -> None:
        post = self.chance.choice(self.posts)
        if post.process.is_alive() and post.role != "spark":
            pid = post.process.pid
            _signal(pid, signal.SIGSTOP)
            threading.Timer(seconds, _signal, (pid, signal.SIGCONT)).start()

    def _fill_disk(self, seconds: float) -> None:
        """The disk is full: the small one that the run lies on; else no file of a writer may grow."""
        balloon = self.folder / "balloon"
        if os.path.ismount(self.folder):
            with suppress(OSError), balloon.open("wb") as file:
                free = shutil.disk_usage(self.folder).free
                os.posix_fallocate(file.fileno(), 0, max(1, free - 8192))
            time.sleep(seconds)
            balloon.unlink(missing_ok=True)
            return
        pids = [post.process.pid for post in self.posts if post.role in ("writer", "upkeep")]
        for limit in (2000, resource.RLIM_INFINITY):
            for pid in pids:
                with suppress(ProcessLookupError, PermissionError):
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            if limit == 2000:
                time.sleep(seconds)

    # ---- the run

    def go(self) -> None:
        """From the first process to the last."""
        self.staff()
        self._until(self.plan.writers, SLOWEST_START_S)
        ends = time.monotonic() + self.plan.seconds
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(left, self.chance.uniform(*self.plan.pace_s)))
            self._age()
            self.disturb()
        self._until(self.plan.least, SLOWEST_START_S)
        self.over.set()
        with self.catalog_is_free:
            self.world.heal()
        self.stop.set()
        for post in self.posts:
            post.process.join(60 if post.role == "spark" else 30)
        for post in list(self.posts):
            if post.process.is_alive():
                self.disturbed["killed at the end"] += 1
            self.kill(post)
        time.sleep(0 if self.plan.catalog == "sqlite" else LATEST_ARRIVAL_S)

    def _until(self, commands: int, seconds: float) -> None:
        """Wait until so many commands have ended, on a busy machine too."""
        latest = time.monotonic() + seconds
        while sum(line["e"] == "end" for line in list(self.lines)) < commands and time.monotonic() < latest:
            time.sleep(0.1)

    def _age(self) -> None:
        """From when on files may belong to a command that is under way, or whose request still is."""
        ends = {line["n"] for line in self.lines if line["e"] == "end"}
        alive = [line["real_ms"] for line in self.lines[-3000:] if line["e"] == "begin" and line["n"] not in ends]
        now = time.time_ns() // 1_000_000
        recent = [ms for ms in alive if ms > now - 60_000]
        self.oldest_ms.value = int(min([now, *recent]) - self.plan.grace_s * 1000)


def run(plan: Plan) -> Figures:
    """A run and its figures."""
    with _small_disk() as folder:
        world = CATALOGS[plan.catalog](folder)
        try:
            catalog = open_catalog(world.true_uri, world.warehouse)
            table = create_table(catalog, TABLE, SCHEMA, partition_by=BY_P, properties=FAST)
            append(table, written(table, [(account, 0, START) for account in ACCOUNTS]))
            running = Run(plan, world, folder)
            running.go()
            told = read_told(running.lines)
            last = read_table(world)
            faults = judged(told, last, LAYOUT, tags_may_go=plan.catalog == "rest")
            return Figures(plan, told, running.disturbed, tuple(faults), len(last.snapshots), len(last.head))
        finally:
            world.close()


def read_table(world: World) -> Table:
    """The table as it lies at the end, read by PyIceberg alone."""
    if world.true_uri.startswith("http"):
        catalog = load_catalog("lakeproof", type="rest", uri=world.true_uri)
    else:
        catalog = load_catalog("lakeproof", type="sql", uri=world.true_uri)
    try:
        table = catalog.load_table(TABLE)
    except FileNotFoundError as error:
        return Table((), {0: f"the table's metadata is gone: {error}"}, frozenset())
    head = table.metadata.current_snapshot_id
    snapshots: dict[int, tuple[Row, ...] | str] = {}
    for snapshot in table.metadata.snapshots:
        try:
            snapshots[snapshot.snapshot_id] = tuple(rows_at(table, snapshot.snapshot_id))
        except Exception as error:
            snapshots[snapshot.snapshot_id] = repr(error)
    rows = snapshots[head] if head is not None else ()
    return Table(() if isinstance(rows, str) else rows, snapshots, frozenset(table.metadata.refs) - {"main"})


@contextmanager
def _small_disk() -> Iterator[Path]:
    """A folder on a small disk of its own, where this user may mount one."""
    with tempfile.TemporaryDirectory(prefix="lakeproof-faults-") as name:
        folder = Path(name)
        mounted = shutil.which("mount") is not None and os.geteuid() == 0 and _mount(folder)
        try:
            yield folder
        finally:
            if mounted:
                subprocess.run(["umount", "--lazy", name], check=False, capture_output=True)


def _mount(folder: Path) -> bool:
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    return subprocess.run(words, check=False, capture_output=True).returncode == 0


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)


def planted_plan(name: str, seed: int, seconds: float) -> Plan:
    """A run in which the writers have a planted error."""
    plan = PLANTED[name]
    upkeep = {kind: n for kind, n in plan.kinds.items() if kind in UPKEEP} or {"compact": 1}
    kinds = {kind: n for kind, n in plan.kinds.items() if kind in WRITES}
    only = ("restarts", "cuts", "cuts of slow requests") if plan.catalog == "rest" else ()
    made = Plan(plan.catalog, seconds, seed, 4, 0, planted=name, kinds=kinds, upkeep=upkeep, grace_s=3.0, least=60)
    return made._replace(only=only, pace_s=(0.1, 0.6), calm_s=(0.0, 0.0))
