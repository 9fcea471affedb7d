"""How long a commit goes on after lost swaps: the table's `commit.retry.*` properties.

Threads of one process that commit to one table let each other go first, where they are in each other's way: whoever has
lost a swap waits for its turn instead of a random time, and keeps it until its commit has ended. That is politeness and
no more: the swap alone decides, and who has waited long enough goes on without a turn.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Mapping

from lakeproof.commit import Attempt
from lakeproof.iceberg.tables.properties import whole_number

_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
_making = threading.Lock()


class Turn:
    """One commit's turn at one table."""

    def __init__(self, table: str) -> None:
        with _making:
            self.lock = _locks[table]
        self.has_it = False

    def wait(self, seconds: float) -> None:
        """Wait for the turn, but no longer; who has it already lost to another process, and waits that long."""
        if self.has_it:
            time.sleep(seconds)
        else:
            self.has_it = self.lock.acquire(timeout=seconds)

    def end(self) -> None:
        """The next one may go."""
        if self.has_it:
            self.has_it = False
            self.lock.release()


class Patience:
    """The retries that a table allows, from now on."""

    def __init__(self, properties: Mapping[str, str], turn: Turn | None = None) -> None:
        self.properties, self.turn = properties, turn
        limited = "commit.retry.num-retries" in properties
        self.max_retries = whole_number(properties, "commit.retry.num-retries", 0) if limited else None
        self.deadline = time.monotonic() + _ms(properties, "total-timeout-ms", 1_800_000) / 1000
        self.waits = 0

    def wait(self, attempt: Attempt | None = None) -> bool:
        """Wait a little before the next try, longer each time; whether there is time for one."""
        if time.monotonic() > self.deadline:
            return False
        self.waits += 1
        seconds = wait_ms(self.properties, self.waits) / 1000
        if self.turn is None:
            time.sleep(seconds)
        else:
            self.turn.wait(seconds)
        return True


def wait_ms(properties: Mapping[str, str], lost: int) -> float:
    """Longer after each lost swap, but no more than 16 times: a commit is short. Never in step with the others."""
    shortest, longest = _ms(properties, "min-wait-ms", 100), _ms(properties, "max-wait-ms", 60_000)
    return float(min(longest, shortest * 2.0 ** min(lost, 4)) * random.uniform(0.1, 0.5))


def _ms(properties: Mapping[str, str], name: str, default: int) -> int:
    return whole_number(properties, f"commit.retry.{name}", default)
