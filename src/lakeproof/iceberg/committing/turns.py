"""Threads of one process that commit to one table let each other go first, where they are in each other's way.

Whoever has lost a swap waits for its turn instead of a random time, and keeps it until its commit has ended. That is
politeness and no more: the swap alone decides, and who has waited long enough goes on without a turn.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict

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
