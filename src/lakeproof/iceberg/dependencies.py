"""`src=dest:transform` says that one column is computed from another; parsed, checked, carried into predicates."""

from __future__ import annotations

from pyiceberg.schema import Schema

DEPENDENCIES_PROPERTY = "lakeproof.column-dependencies"


def check_dependencies(text: str, schema: Schema, *, place: str) -> None:
    """Every problem of the text is named in one `InvalidInput`."""
    raise NotImplementedError
