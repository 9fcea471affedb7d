"""What lies in a folder."""

from __future__ import annotations

from pathlib import Path


def files_below(folder: Path) -> set[str]:
    """Every file below a folder, by its path from there."""
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
