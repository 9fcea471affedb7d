"""A statement that is run step by step: it stops at each phase until it is told to go on.

Each writer is a thread with a Spark thread of its own, and at any moment at most one of them runs. So two real writers
go through a schedule deterministically, in exactly the code that runs without anybody watching.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from lakeproof.commit import Conflict
from lakeproof.errors import CommitUnknown
from lakeproof.iceberg.committing.commit import SWAPPED
from lakeproof.spark.lake import Lake

ENDED = "ended"
PATIENCE_SECONDS = 300.0


class Abandoned(BaseException):
    """The writer is given up: it ends wherever it stands."""


class SteppedWriter:
    """One writer. `at` is the phase at which it waits; after `ENDED` there may be an `error`."""

    def __init__(self, lake: Lake, run: Callable[[Lake], object], **how: Any) -> None:
        self.lake = lake.watched(on_phase=self._reached, on_rerun=lambda why: self.conflicts.append(why), **how)
        self.run = run
        self.at, self.error = "", None  # type: str, BaseException | None
        self.passed: list[str] = []
        self.conflicts: list[Conflict] = []
        self.loses_answer = False
        self._abandoned = False
        self._turn, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._through, daemon=True)
        self._started = False

    def until(self, phases: Iterable[str]) -> str:
        """Let it run to the first of these phases, or to its end."""
        wanted = set(phases)
        while self.at != ENDED:
            self._go()
            if self.at in wanted:
                break
        return self.at

    def abandon(self) -> None:
        """It never goes on; nothing is cleaned up while it lives, as after a crash."""
        if self._started and self.at != ENDED:
            self._abandoned = True
            self._go()

    def _go(self) -> None:
        if self._started:
            self._turn.release()
        else:
            self._started = True
            self._thread.start()
        if not self._stopped.acquire(timeout=PATIENCE_SECONDS):
            raise TimeoutError(f"a writer has been running for {PATIENCE_SECONDS} seconds since '{self.at}'")

    def _through(self) -> None:
        try:
            self.run(self.lake)
        except BaseException as error:  # told to whoever steps
            self.error = error
        self.at = ENDED
        self._stopped.release()

    def _reached(self, phase: str) -> None:
        self.at = phase
        self.passed.append(phase)
        self._stopped.release()
        self._turn.acquire()
        if self._abandoned:
            raise Abandoned
        if phase == SWAPPED and self.loses_answer:
            self.loses_answer = False
            raise CommitUnknown("the answer was lost")
