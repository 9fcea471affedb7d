"""An object store in memory: a file is there whole or not at all, and any call may fail, lose its answer or kill."""

from __future__ import annotations

import errno
import io
from typing import Any

import clockwork
from pyarrow.fs import FileInfo, FileSelector, FileType
from pyiceberg.io import InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

files: dict[str, bytes] = {}
changed_ms: dict[str, int] = {}
removed_by: dict[str, str] = {}


def clear() -> None:
    """An empty store."""
    files.clear()
    changed_ms.clear()
    removed_by.clear()


def outage(path: str) -> OSError:
    return OSError(errno.EIO, f"the storage does not answer: {path}")


def _step(kind: str, path: str) -> str:
    world = clockwork.running
    return clockwork.NO_FAULT if world is None else world.step(kind, path.rpartition("/")[2])


def _after(fault: str, path: str) -> None:
    """The call has had its effect; now its caller hears of it, or not."""
    if fault == "lost":
        raise outage(path)
    if fault == "crash after":
        assert clockwork.running is not None
        clockwork.running.die()


class MemoryInput(InputFile):
    """A file to read."""

    def __len__(self) -> int:
        return len(files[self.location])

    def exists(self) -> bool:
        if _step("get", self.location):
            raise outage(self.location)
        return self.location in files

    def open(self, seekable: bool = True) -> Any:
        if _step("get", self.location):
            raise outage(self.location)
        if self.location not in files:
            raise FileNotFoundError(errno.ENOENT, "no such file", self.location)
        return io.BytesIO(files[self.location])


class _Upload(io.BytesIO):
    """What is written is stored when it is closed, unless something went wrong before."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path, self.failed = path, False

    def __exit__(self, *failure: Any) -> None:
        self.failed = failure[0] is not None
        self.close()

    def close(self) -> None:
        if self.closed:
            return
        data = self.getvalue()
        super().close()
        if self.failed:
            return
        fault = _step("put", self.path)
        if fault == "fail":
            raise outage(self.path)
        files[self.path] = data
        world = clockwork.running
        changed_ms[self.path] = clockwork.START_MS if world is None else world.now_ms
        _after(fault, self.path)


class MemoryOutput(OutputFile):
    """A file to write."""

    def __len__(self) -> int:
        return len(files[self.location])

    def exists(self) -> bool:
        return MemoryInput(self.location).exists()

    def to_input_file(self) -> MemoryInput:
        return MemoryInput(self.location)

    def create(self, overwrite: bool = False) -> Any:
        if not overwrite and self.exists():
            raise FileExistsError(errno.EEXIST, "file exists", self.location)
        return _Upload(self.location)


class MemoryIO(PyArrowFileIO):
    """The store as PyIceberg's FileIO."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self.fs_by_scheme = lambda scheme, netloc: _Listing()

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        return "mem", "", location

    def new_input(self, location: str) -> Any:
        return MemoryInput(location)

    def new_output(self, location: str) -> Any:
        return MemoryOutput(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        path = location if isinstance(location, str) else location.location
        fault = _step("delete", path)
        if fault == "fail":
            raise outage(path)
        if path not in files:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        del files[path]
        world = clockwork.running
        removed_by[path] = "nobody" if world is None or world.turn is None else world.turn.name
        _after(fault, path)


class _Listing:
    """Folders as pyarrow's file systems list them."""

    def get_file_info(self, selector: FileSelector) -> list[FileInfo]:
        if _step("list", selector.base_dir):
            raise outage(selector.base_dir)
        inside = selector.base_dir.rstrip("/") + "/"
        return [
            FileInfo(path, FileType.File, mtime_ns=changed_ms[path] * 1_000_000, size=len(data))
            for path, data in files.items()
            if path.startswith(inside)
        ]
