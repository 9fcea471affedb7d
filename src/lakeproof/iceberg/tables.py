"""Tables are made, loaded, renamed and dropped; a name without a namespace is in `default`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table


class PartitionBy(NamedTuple):
    """One partition field: a column under a transform (`identity`, `bucket[16]`, `truncate[4]`, `day`, …)."""

    column: str
    transform: str = "identity"
    name: str | None = None


def create_table(
    catalog: Catalog,
    name: str,
    schema: Schema,
    *,
    partition_by: Sequence[PartitionBy] = (),
    properties: Mapping[str, str] | None = None,
    location: str | None = None,
    column_dependencies: str = "",
    if_not_exists: bool = False,
) -> Table:
    """A new table; field ids of `schema` are assigned afresh (pass any)."""
    raise NotImplementedError


def load_table(catalog: Catalog, name: str) -> Table:
    """The table at its newest metadata; an unknown name is an `InvalidInput` that names the nearest ones."""
    raise NotImplementedError


def drop_table(catalog: Catalog, name: str, *, if_exists: bool = False, purge: bool = False) -> None:
    """The table leaves the catalog; `purge` also removes its files."""
    raise NotImplementedError


def rename_table(catalog: Catalog, name: str, new_name: str) -> Table:
    """The table under its new name."""
    raise NotImplementedError


def list_tables(catalog: Catalog, namespace: str = "default") -> tuple[str, ...]:
    """Names of the namespace's tables, sorted."""
    raise NotImplementedError
