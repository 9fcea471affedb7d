"""How kernels are compiled: without the interpreter lock, and kept on disk between runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

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
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakeproof"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:
        return str(Path(tempfile.gettempdir()) / f"lakeproof-{os.getuid()}")
    return str(home)


numba.config.CACHE_DIR = numba.config.CACHE_DIR or cache_folder(Path(__file__).parent)


def kernel(function: F) -> F:
    """Compile on first call, release the lock while it runs, keep the machine code."""
    return cast(F, numba.njit(nogil=True, cache=True)(function))
