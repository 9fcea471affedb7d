"""How kernels are compiled: without the interpreter lock, and kept on disk between runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from lakeproof.private_folders import private_folders

F = TypeVar("F", bound=Callable[..., Any])

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]
u64 = np.uint64  # in kernels every constant beside a uint64 must be one, or numba turns both into floats
i64 = cast(Callable[[Any], int], np.int64)


def cache_folder(beside: Path) -> str:
    """Where compiled code is kept when it cannot lie beside the source; empty: it can."""
    if os.access(beside, os.W_OK):
        return ""
    for folder in private_folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            return str(folder)
    raise AssertionError("a new folder can be made")


numba.config.CACHE_DIR = numba.config.CACHE_DIR or cache_folder(Path(__file__).parent)


def kernel(function: F) -> F:
    """Compile on first call, release the lock while it runs, keep the machine code."""
    return cast(F, numba.njit(nogil=True, cache=True)(function))
