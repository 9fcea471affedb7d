"""Files that never change are read once: the most recent results are kept by path.

Not `functools.lru_cache`: every load of a table makes a new FileIO, and the path alone says what is in the file.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """At most `size` values by key, the least recently used leaving first; safe for threads."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str, make: Callable[[], T]) -> T:
        """The value of the key, made if it is not there; two threads may make it at once, and nobody minds."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > self.size:
                self._kept.popitem(last=False)
        return made

    def clear(self) -> None:
        """Nothing is kept."""
        with self._lock:
            self._kept.clear()
