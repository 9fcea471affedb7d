"""What a write leaves behind when its commit fails: nothing, if it certainly did not happen; else everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakeproof.errors import CommitUnknown, LakeproofError


@contextmanager
def removed_if_refused(remove: Callable[[], None]) -> Iterator[None]:
    """Call `remove` when the commit inside was refused.

    An unknown outcome, and whatever else comes (Ctrl-C can come right after the swap), may belong to a commit that did
    happen: its files stay, and if it did not, `remove_orphan_files` finds them.
    """
    try:
        yield
    except CommitUnknown:
        raise
    except LakeproofError:
        remove()
        raise
