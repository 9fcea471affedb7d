"""A change of metadata alone is made again on the newest metadata until it wins its swap, is refused, or time is over.

An ALTER, a tag or an expiry waits for a busy catalog as long as an INSERT does (`commit.retry.*`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from pyiceberg.table import Table
from pyiceberg.table.update import AssertTableUUID, TableRequirement, TableUpdate, ValidatableTableRequirement

from lakeproof.errors import CommitRejected, InvalidInput, Unavailable
from lakeproof.iceberg.committing.patience import Patience
from lakeproof.iceberg.committing.pointer import refreshed
from lakeproof.iceberg.failures import database_was_busy, swapping, translate_errors

T = TypeVar("T")
Requirement = TableRequirement | ValidatableTableRequirement


def change_metadata(table: Table, change: Callable[[Table], T]) -> T:
    """What `change` gives for the newest metadata; it is called again after every lost swap."""
    place = f"table {'.'.join(table.name())}"

    return until_swapped(place, table.properties, lambda: change(same_table(table, refreshed(table))))


def same_table(table: Table, newest: Table) -> Table:
    """The newest metadata, if it is that of the same table: a name may have come to mean another."""
    if newest.metadata.table_uuid != table.metadata.table_uuid:
        place = f"table {'.'.join(table.name())}"
        raise InvalidInput("the table was dropped and made anew meanwhile", place=place)
    return newest


def commit_updates(table: Table, requirements: Sequence[Requirement], updates: Sequence[TableUpdate]) -> Table:
    """The table after these updates; `requirements` are asked besides that it is still the same table."""
    same = AssertTableUUID(uuid=table.metadata.table_uuid)
    asked = cast(tuple[TableRequirement, ...], (same, *requirements))
    with swapping(f"table {'.'.join(table.name())}"):
        answer = table.catalog.commit_table(table, asked, tuple(updates))
    return Table(table.name(), answer.metadata, answer.metadata_location, table.io, table.catalog)


def until_swapped(place: str, properties: Mapping[str, str], change: Callable[[], T]) -> T:
    """What `change` gives, tried again after every lost swap (`CommitRejected`); other errors are one sentence."""
    patience = Patience(properties)
    while True:
        try:
            with translate_errors(place):
                return change()
        except (CommitRejected, Unavailable) as error:
            if isinstance(error, Unavailable) and not database_was_busy(error.__cause__ or error):
                raise
            most = patience.max_retries
            if (most is not None and patience.waits >= most) or not patience.wait():
                raise
