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


def _choose_cache() -> None:
    """Compiled code lies beside the source, or where that is read-only in a folder of this user."""
    if numba.config.CACHE_DIR or os.access(Path(__file__).parent, os.W_OK):
        return
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakeproof"
    try:
        home.mkdir(parents=True, exist_ok=True)
        writable = os.access(home, os.W_OK)
    except OSError:
        writable = False
    numba.config.CACHE_DIR = str(home if writable else Path(tempfile.gettempdir()) / f"lakeproof-{os.getuid()}")


_choose_cache()


def kernel(function: F) -> F:
    """Compile on first call, release the lock while it runs, keep the machine code."""
    return cast(F, numba.njit(nogil=True, cache=True)(function))
