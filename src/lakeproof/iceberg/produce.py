"""A change on top of a head becomes a snapshot's manifests, manifest list and summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyiceberg.manifest import DataFile


@dataclass(frozen=True)
class FileChange:
    """The files that one commit adds and removes, as one snapshot.

    `operation`: append, overwrite, delete or replace. `removed_*`: paths. `data_sequence_number`: of the added data
    files; `None` is the new snapshot's own.
    """

    operation: str
    added_data_files: tuple[DataFile, ...] = ()
    removed_data_files: tuple[str, ...] = ()
    added_delete_files: tuple[DataFile, ...] = ()
    removed_delete_files: tuple[str, ...] = ()
    data_sequence_number: int | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
