"""A process of a fault run that does everything through SQL on Spark: a session, its JVM, and plain statements."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from random import Random
from typing import Any, NamedTuple

from fault_commands import ACCOUNTS, JOURNAL, LAST_DIGIT, LEDGER, MERGED, OVERWRITTEN, STEP, merge_key
from fault_writers import PATIENT_S, REAL_TIME_NS, Post, Teller, how_it_ended, waits_for_catalog, wrong_accounts
from planted_faults import planted

from lakeproof.errors import LakeproofError

KINDS = {"insert": 5, "transfer": 5, "delete": 2, "update": 2, "merge": 2, "empty": 1, "compact": 1, "select": 4}
Made = tuple[str, dict[str, Any]]


class Statements:
    """Draws statements, each with what the log says of it."""

    def __init__(self, chance: Random, first: int, ask: Callable[[str], list[Any]]) -> None:
        self.chance, self.next, self.ask = chance, first + LAST_DIGIT, ask

    def chosen(self) -> tuple[str, dict[str, Any]] | None:
        """A statement; `None`: it would need a row, and there is none."""
        kind = self.chance.choices(list(KINDS), list(KINDS.values()))[0]
        self.next += STEP
        made: Made | None = getattr(self, f"_{kind}")(self.next)
        return made if made is None else (made[0], {"n": self.next, "kind": kind, "by": "spark", **made[1]})

    def _select(self, _n: int) -> None:
        return None

    def _insert(self, n: int) -> Made:
        p, ids = self.chance.choice(JOURNAL), [n * 10, n * 10 + 1]
        return f"insert into t values {', '.join(f'({i}, {p}, {n})' for i in ids)}", {"ids": ids}

    def _transfer(self, n: int) -> Made:
        key, to = self.chance.sample(ACCOUNTS, 2)
        amount = self.chance.randrange(1, 50)
        text = f"""merge into t using (select * from values ({key}L, {-amount}L), ({to}L, {amount}L), ({n}L, {amount}L)
            as s (id, d)) s on t.id = s.id when matched then update set v = t.v + s.d
            when not matched then insert (id, p, v) values (s.id, {LEDGER}, s.d)"""
        return text, {"from": key, "to": to, "amount": amount}

    def _row(self) -> int | None:
        p = self.chance.choice(JOURNAL)
        rows = self.ask(f"select id from t where p = {p} order by id desc limit 20")
        return int(self.chance.choice(rows)[0]) if rows else None

    def _delete(self, _n: int) -> Made | None:
        key = self._row()
        return None if key is None else (f"delete from t where id = {key}", {"id": key})

    def _update(self, n: int) -> Made | None:
        key = self._row()
        return None if key is None else (f"update t set v = {n} where id = {key}", {"id": key})

    def _merge(self, n: int) -> Made:
        key = merge_key()
        text = f"""merge into t using (select {key}L as id) s on t.id = s.id
            when not matched then insert (id, p, v) values (s.id, {MERGED}, {n})"""
        return text, {"id": key}

    def _empty(self, _n: int) -> Made:
        p = self.chance.choice(OVERWRITTEN)
        return f"delete from t where p = {p}", {"p": p}

    def _compact(self, _n: int) -> Made:
        return "call system.rewrite_data_files('t')", {"p": -1}


def run_spark(post: Post, pipe: Connection, stop: Any, _oldest_ms: Any) -> None:
    """Run statements until the run is over."""
    os.setsid()  # a group of its own: it dies together with its JVM
    import lakeproof

    chance, tell = Random(post.seed), Teller(pipe)
    with planted(post.planted):
        lake = None
        while lake is None and not stop.is_set():
            try:
                lake = lakeproof.connect(catalog=post.uri, warehouse=post.warehouse)
            except LakeproofError:
                time.sleep(0.2)
        if lake is None:
            return
        made = Statements(chance, post.first, lambda text: lake.collect(lake.sql(text)))
        tell(e="jump", by=0)
        while not stop.is_set():
            try:
                chosen = made.chosen()
                if chosen is None:
                    _look(lake, tell)
                    continue
            except LakeproofError:
                time.sleep(0.1)
                continue
            except Exception as error:
                tell(e="fault", kind="raw error", what=f"a query on Spark: {error!r}"[:400])
                continue
            text, told = chosen
            tell(e="begin", real_ms=REAL_TIME_NS() // 1_000_000, **told)
            ended = how_it_ended(lambda: _done(lake, text))  # noqa: B023
            tell(e="end", n=told["n"], **ended)
            if ended["how"] == "refused" and waits_for_catalog(post, ended):
                time.sleep(chance.uniform(*PATIENT_S))
        lake.spark.stop()


class Acknowledged(NamedTuple):
    """A statement that Spark answered; whether it found something to do, Spark does not say."""

    snapshot_id: int = 1


def _done(lake: Any, text: str) -> Acknowledged:
    lake.sql(text)
    return Acknowledged()


def _look(lake: Any, tell: Teller) -> None:
    rows = [tuple(row) for row in lake.collect(lake.sql("select id, p, v from t where p = 0"))]
    if wrong := wrong_accounts(rows, "Spark"):
        tell(e="fault", kind="wrong sum", what=wrong)
    tell(e="read", snapshot=0)
