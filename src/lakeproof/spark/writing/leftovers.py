"""What a write leaves behind when its commit fails: nothing, if it certainly did not happen; else everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakeproof.commit.driver import certainly_failed


@contextmanager
def removed_if_refused(remove: Callable[[], None]) -> Iterator[None]:
    """Call `remove` when the commit inside certainly failed.

    Whatever else comes may belong to a commit that did happen: its files stay, and if it did not, `remove_orphan_files`
    finds them.
    """
    try:
        yield
    except BaseException as error:
        if certainly_failed(error):
            remove()
        raise
