"""How long a commit goes on after lost swaps: the table's `commit.retry.*` properties."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping

from lakeproof.commit import Attempt
from lakeproof.iceberg.committing.turns import Turn
from lakeproof.iceberg.tables.properties import whole_number


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
