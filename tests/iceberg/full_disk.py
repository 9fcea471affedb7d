"""A disk that is full from some call on, in place of the files that PyIceberg writes."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from pyiceberg.io.pyarrow import PyArrowFile


class Disk:
    """A disk that is full from its nth call on: an open, a write or a close of a file that is written."""

    def __init__(self, room: int | None = None) -> None:
        self.room, self.calls, self.real = room, 0, PyArrowFile.create

    def use(self) -> None:
        self.calls += 1
        if self.room is not None and self.calls > self.room:
            raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left on device")

    def create(self) -> Callable[..., Any]:
        disk = self

        def create(file: PyArrowFile, overwrite: bool = False) -> Any:
            disk.use()
            return _Full(disk, disk.real(file, overwrite))

        return create


class _Full:
    def __init__(self, disk: Disk, stream: Any) -> None:
        self.disk, self.stream = disk, stream

    def write(self, data: Any) -> Any:
        self.disk.use()
        return self.stream.write(data)

    def close(self) -> None:
        self.stream.close()
        self.disk.use()

    def __enter__(self) -> _Full:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
