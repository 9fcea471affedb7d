"""What this process remembers of files that never change, forgotten: an audit asks whether they did."""

from __future__ import annotations

from lakeproof.iceberg.reading.delete_files import forget_positions
from lakeproof.iceberg.reading.manifest_cache import forget_lists
from lakeproof.iceberg.reading.verifying import forget_verified


def forget_everything() -> None:
    """Lists, headers and positions are read again."""
    forget_lists()
    forget_verified()
    forget_positions()
