"""Blame where it belongs: an exception out of a model's own code becomes a `ModelError` with file and line."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lakeproof.errors import LakeproofError, ModelError

HERE = str(Path(__file__).parent)
TABLES = str(Path(__file__).parent / "tables.py")  # where what a step yields is taken apart


@contextmanager
def blaming(model: str) -> Iterator[None]:
    """What the model's functions raise inside becomes a `ModelError`; a fault of the search itself stays as it is."""
    try:
        yield
    except LakeproofError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        calls = [frame for frame in frames if not frame.filename.startswith(HERE)]
        if isinstance(error, TypeError) and str(error).startswith("unhashable type"):
            raise ModelError(
                f"model {model!r} has a value that is not immutable ({error}): the search must be able to hash it"
            ) from error
        if frames[-1].filename == TABLES and isinstance(error, TypeError | ValueError | AttributeError | IndexError):
            raise ModelError(f"a step of model {model!r} yields something that is not an Outcome: {error}") from error
        outside = [frame for frame in calls if frame.filename.endswith(".py") and "contextlib" not in frame.filename]
        if not outside or _entered_from_here(frames) is None:
            raise
        at = outside[-1]
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise ModelError(f"model {model!r} raised {what}\n  at    {at.filename}:{at.lineno}, in {at.name}") from error


def _entered_from_here(frames: traceback.StackSummary) -> traceback.FrameSummary | None:
    """The first frame of foreign code that the search called; None: the fault is in the search."""
    inside = False
    for frame in frames:
        if frame.filename.startswith(HERE):
            inside = True
        elif inside and "contextlib" not in frame.filename:
            return frame
    return None
