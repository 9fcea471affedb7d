"""Row lineage: the two columns under which a row that is written again keeps what it had.

A row whose file says nothing has its file's first id plus its position, and its file's data sequence number. So a new
row needs no column; a row that is written again carries both values, or, where it was changed, its id alone.
"""

from __future__ import annotations

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.format_v3.row_ids import LAST_UPDATED_FIELD, ROW_ID_FIELD

ROW_ID, LAST_UPDATED = "_row_id", "_last_updated_sequence_number"


def has_lineage(table: Table) -> bool:
    """Whether the rows of the table have ids."""
    return bool(table.format_version >= 3)


def as_stored(table: Table) -> Table:
    """The table with the columns that files of moved rows have: from format version 3 on two more, behind its own.

    Files are written as this table's; what is committed is the table itself, for no schema in metadata may name them.
    """
    if not has_lineage(table):
        return table
    own = table.schema()
    taken = next((field.name for field in own.fields if field.name.lower() in (ROW_ID, LAST_UPDATED)), None)
    if taken is not None:
        raise InvalidInput(
            f"rows cannot be written again while a column is called `{taken}`, which is what row ids are stored under",
            place=f"table {'.'.join(table.name())}",
            hint=f"alter table … rename column {taken} to another name",
        )
    stored = [NestedField(ROW_ID_FIELD, ROW_ID, LongType()), NestedField(LAST_UPDATED_FIELD, LAST_UPDATED, LongType())]
    wide = Schema(*own.fields, *stored, schema_id=own.schema_id)
    schemas = [wide if each.schema_id == own.schema_id else each for each in table.metadata.schemas]
    metadata = table.metadata.model_copy(update={"schemas": schemas})
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)
