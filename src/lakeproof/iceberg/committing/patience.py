"""How long a commit goes on after lost swaps: the table's `commit.retry.*` properties."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping

from lakeproof.commit import Attempt


class Patience:
    """The retries that a table allows, from now on."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.properties = properties
        retries = properties.get("commit.retry.num-retries")
        self.max_retries = None if retries is None else int(retries)
        self.deadline = time.monotonic() + self._seconds("commit.retry.total-timeout-ms", 1_800_000)
        self.waits = 0

    def wait(self, attempt: Attempt) -> bool:
        """Wait a little before the next try, longer each time; whether there is time for one."""
        if time.monotonic() > self.deadline:
            return False
        self.waits += 1
        time.sleep(self._pause())
        return True

    def _pause(self) -> float:
        """No more than 16 times the shortest: a commit is short. Never in step with the others."""
        shortest = self._seconds("commit.retry.min-wait-ms", 100)
        longest = self._seconds("commit.retry.max-wait-ms", 60_000)
        return float(min(longest, shortest * 2.0 ** min(self.waits, 4)) * random.uniform(0.1, 0.5))

    def _seconds(self, name: str, default_ms: int) -> float:
        return int(self.properties.get(name, default_ms)) / 1000
