"""Tables are made, loaded, renamed and dropped; a name without a namespace is in `default`."""

from __future__ import annotations

import difflib
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack

from pyarrow.fs import FileSelector, FileType
from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.io import load_file_io
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform, parse_transform
from pyiceberg.types import NestedField, PrimitiveType, StructType
from sqlalchemy.exc import SQLAlchemyError

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.pointer import is_in_catalog, load_newest
from lakeproof.iceberg.committing.retrying import until_swapped
from lakeproof.iceberg.failures import database_was_busy, swapping, translate_errors
from lakeproof.iceberg.tables.catalogs import CATALOG_NAME, NAMESPACE, warehouse_location
from lakeproof.iceberg.tables.column_dependencies import DEPENDENCIES_PROPERTY, check_dependencies
from lakeproof.iceberg.tables.dropping import purge_table
from lakeproof.iceberg.tables.properties import check_properties

T = TypeVar("T")
CREATED_PROPERTY = "lakeproof.created-ms"  # files of its folder that are older are not the table's


class PartitionBy(NamedTuple):
    """One partition field: a column under a transform (`identity`, `bucket[16]`, `truncate[4]`, `day`, …)."""

    column: str
    transform: str = "identity"
    name: str | None = None


_PARTS = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def name_parts(name: str) -> tuple[str, ...]:
    """The parts of a dotted name; a part that holds dots or backticks is quoted.

    >>> name_parts("ns.`a.b`")
    ('ns', 'a.b')
    """
    found, at = [], 0
    while at <= len(name):
        part = _PARTS.match(name, at)
        if part is None or name[part.end() : part.end() + 1] not in ("", "."):
            raise InvalidInput(f"`{name}` is not a table name", hint="write table, or namespace.table")
        found.append(part[2] if part[1] is None else part[1].replace("``", "`"))
        at = part.end() + 1
    return tuple(found)


def joined_name(parts: Sequence[str]) -> str:
    """The dotted name of these parts, quoted where `name_parts` would read them in another way."""
    return ".".join("`" + part.replace("`", "``") + "`" if "." in part or "`" in part else part for part in parts)


def identifier(name: str) -> tuple[str, str]:
    """(namespace, table) of `t`, `ns.t` or `lakeproof.ns.t`."""
    parts = name_parts(name)
    if len(parts) > 2 and parts[0] == CATALOG_NAME:
        parts = parts[1:]
    if not all(parts):
        raise InvalidInput(f"`{name}` is not a table name", hint="write table, or namespace.table")
    return (".".join(parts[:-1]) or NAMESPACE, parts[-1])


class TableDetails(TypedDict, total=False):
    """What a new table may be told beside its name and its columns."""

    partition_by: Sequence[PartitionBy]
    properties: Mapping[str, str] | None
    location: str | None
    column_dependencies: str


def create_table(
    catalog: Catalog,
    name: str,
    schema: Schema,
    *,
    if_not_exists: bool = False,
    **more: Unpack[TableDetails],
) -> Table:
    """A new table; field ids of `schema` are assigned afresh (pass any)."""
    told = describe_new_table(catalog, name, schema, **more)
    try:
        return _asked(name, told["properties"], lambda: _created(catalog, told, own=more.get("location") is None))
    except InvalidInput as error:
        if if_not_exists and isinstance(error.__cause__, TableAlreadyExistsError):
            return load_table(catalog, name)
        raise


def _created(catalog: Catalog, told: dict[str, Any], *, own: bool) -> Table:
    """One request. A busy database took none, so that its metadata goes from the new folder: the next has its own.

    PyIceberg reads the table once it is made; by then somebody may have committed, and removed its first metadata.
    """
    try:
        return catalog.create_table(**told)
    except FileNotFoundError:
        return load_newest(catalog, told["identifier"])
    except SQLAlchemyError as error:
        if own and told["location"] and database_was_busy(error):
            _empty(catalog, f"{told['location']}/metadata")
        raise


def _empty(catalog: Catalog, folder: str) -> None:
    io = load_file_io(catalog.properties, folder)
    for path, _ in files_below(io, folder) if isinstance(io, PyArrowFileIO) else ():
        with suppress(OSError):
            io.delete(path)


def _renamed(catalog: Catalog, name: str, new_name: str) -> Table:
    """One request, after which PyIceberg reads the table: by then that metadata may have been replaced and removed."""
    try:
        return catalog.rename_table(identifier(name), identifier(new_name))
    except FileNotFoundError:
        return load_newest(catalog, identifier(new_name))


def describe_new_table(
    catalog: Catalog,
    name: str,
    schema: Schema,
    *,
    partition_by: Sequence[PartitionBy] = (),
    properties: Mapping[str, str] | None = None,
    location: str | None = None,
    column_dependencies: str = "",
) -> dict[str, Any]:
    """A table that is to be made, as PyIceberg's catalogs want it told; it gets a folder that no other table uses."""
    place = f"table {name}"
    _refuse_unwritable_version(properties or {}, place)
    check_properties(properties or {}, place)
    if column_dependencies.strip():
        check_dependencies(column_dependencies, schema, place=place)
        properties = {**(properties or {}), DEPENDENCIES_PROPERTY: column_dependencies}
    created = {CREATED_PROPERTY: str(time.time_ns() // 1_000_000)}
    spec = partition_spec(schema, partition_by, place)
    return {
        "identifier": identifier(name),
        "schema": schema,
        "location": own_folder(catalog, name) if location is None else warehouse_location(location),
        "partition_spec": spec,
        "properties": {**created, **(properties or {})},
    }


def own_folder(catalog: Catalog, name: str) -> str | None:
    """`warehouse/namespace/table`, or beside it where that is not certainly new; `None`: a server decides.

    A renamed table keeps its folder, and a dropped one its files: neither may become another table's.
    """
    warehouse = catalog.properties.get("warehouse")
    if warehouse is None or not isinstance(catalog, MetastoreCatalog):
        return None
    folder = "/".join([warehouse.rstrip("/"), *identifier(name)])
    with translate_errors(f"table {name}"):
        return folder if _claimed(folder) else f"{folder}-{uuid.uuid4().hex[:8]}"


def _claimed(folder: str) -> bool:
    """Whether the folder is made here and now: of two who try at once, one makes it. An object store has no folders."""
    if not folder.startswith("file://"):
        return False
    try:
        Path(folder.removeprefix("file://"), "metadata").mkdir(parents=True)
    except FileExistsError:
        return False
    return True


def files_below(io: PyArrowFileIO, folder: str) -> Iterator[tuple[str, int]]:
    """Every file in a folder, spelled as `folder` is, with its time of change in milliseconds."""
    scheme, netloc, path = io.parse_location(folder, io.properties)
    selector = FileSelector(path, allow_not_found=True, recursive=True)
    for info in io.fs_by_scheme(scheme, netloc).get_file_info(selector):
        if info.type == FileType.File:
            yield folder + info.path[len(path) :], 0 if info.mtime_ns is None else int(info.mtime_ns) // 1_000_000


def load_table(catalog: Catalog, name: str) -> Table:
    """The table at its newest metadata; an unknown name is an `InvalidInput` that names the nearest ones."""
    namespace, table = identifier(name)
    try:
        with translate_errors(f"table {name}"):
            return load_newest(catalog, (*namespace.split("."), table))
    except InvalidInput as error:
        if not isinstance(error.__cause__, NoSuchTableError):
            raise
        raise InvalidInput(f"there is no table `{name}`", hint=_nearest(catalog, namespace, table)) from None


def find_table(catalog: Catalog, name: str) -> Table | None:
    """The table at its newest metadata, or `None` where the catalog does not know the name."""
    namespace, table = identifier(name)
    with translate_errors(f"table {name}"):
        try:
            return load_newest(catalog, (*namespace.split("."), table))
        except NoSuchTableError:
            return None


def table_exists(catalog: Catalog, name: str) -> bool:
    """Whether the catalog knows the name."""
    with translate_errors(f"table {name}"):
        return is_in_catalog(catalog, identifier(name))


def drop_table(catalog: Catalog, name: str, *, if_exists: bool = False, purge: bool = False) -> None:
    """The table leaves the catalog; `purge` also removes the files that its metadata names."""
    if not table_exists(catalog, name):
        if if_exists:
            return
        load_table(catalog, name)  # which names the nearest tables
    if purge:
        _asked(name, {}, lambda: purge_table(catalog, (*identifier(name)[0].split("."), identifier(name)[1])))
    else:
        _asked(name, {}, lambda: catalog.drop_table(identifier(name)))


def rename_table(catalog: Catalog, name: str, new_name: str) -> Table:
    """The table under its new name; its files stay where they are."""
    load_table(catalog, name)
    return _asked(name, {}, lambda: _renamed(catalog, name, new_name))


def _asked(name: str, properties: Mapping[str, str], ask: Callable[[], T]) -> T:
    """The catalog's answer; a busy database is asked again, and one that does not answer may have done it."""

    def once() -> T:
        with swapping(f"table {name}"):
            return ask()

    return until_swapped(f"table {name}", properties, once)


def list_tables(catalog: Catalog, namespace: str = NAMESPACE) -> tuple[str, ...]:
    """Names of the namespace's tables, sorted."""
    with translate_errors(f"namespace {namespace}"):
        return tuple(sorted(found[-1] for found in catalog.list_tables(namespace)))


def list_namespaces(catalog: Catalog) -> tuple[str, ...]:
    """Names of the catalog's namespaces, sorted."""
    with translate_errors("catalog"):
        return tuple(sorted(".".join(found) for found in catalog.list_namespaces()))


def all_tables(catalog: Catalog) -> tuple[str, ...]:
    """The dotted names of every table of the catalog, sorted."""
    spaces = list_namespaces(catalog)
    return tuple(joined_name((*space.split("."), name)) for space in spaces for name in list_tables(catalog, space))


def create_namespace(catalog: Catalog, namespace: str, *, if_not_exists: bool = False) -> None:
    """The namespace is there afterwards."""
    with translate_errors(f"namespace {namespace}"):
        if if_not_exists:
            catalog.create_namespace_if_not_exists(namespace)
        else:
            catalog.create_namespace(namespace)


def drop_namespace(catalog: Catalog, namespace: str, *, cascade: bool = False) -> None:
    """The namespace is gone; with `cascade` its tables leave the catalog first, and their files stay."""
    tables = list_tables(catalog, namespace)
    if tables and not cascade:
        raise InvalidInput(
            f"the namespace `{namespace}` is not empty",
            hint=f"drop its tables first ({', '.join(tables[:3])}{', …' * (len(tables) > 3)}), or say CASCADE",
        )
    for table in tables:
        drop_table(catalog, joined_name([namespace, table]), if_exists=True)
    with translate_errors(f"namespace {namespace}"):
        catalog.drop_namespace(namespace)


def partition_field_name(column: str, transform: str) -> str:
    """Iceberg's own names: `day` of `ts` is `ts_day`, `bucket[16]` of `id` is `id_bucket`."""
    kind = transform.partition("[")[0]
    return column if kind == "identity" else f"{column}_{'trunc' if kind == 'truncate' else kind}"


def find_column(schema: Schema, column: str, place: str) -> NestedField:
    """The field of that name, in any case; an unknown one is an `InvalidInput` that names the nearest."""
    try:
        return schema.find_field(column, case_sensitive=False)
    except ValueError:
        near = difflib.get_close_matches(column, schema.column_names, n=3)
        hint = f"columns: {', '.join(near or schema.column_names)}"
        raise InvalidInput(f"there is no column `{column}`", place=place, hint=hint) from None


def column_path(schema: Schema, field_id: int) -> tuple[str, ...]:
    """The names that lead to a column: its own, or those of the structs around it first. A name may hold dots."""

    def search(fields: Sequence[NestedField]) -> tuple[str, ...]:
        for field in fields:
            if field.field_id == field_id:
                return (field.name,)
            found = search(field.field_type.fields) if isinstance(field.field_type, StructType) else ()
            if found:
                return (field.name, *found)
        return ()

    return search(schema.fields)


def partition_spec(schema: Schema, partition_by: Sequence[PartitionBy], place: str) -> PartitionSpec:
    """The partitioning of a new table."""
    fields = []
    for number, part in enumerate(partition_by):
        source = find_column(schema, part.column, place)
        with translate_errors(f"{place}, partition field {part.transform} of {part.column}"):
            transform = parse_transform(part.transform)
        if not isinstance(source.field_type, PrimitiveType) or not transform.can_transform(source.field_type):
            raise InvalidInput(
                f"`{part.transform}` cannot be applied to `{part.column}`, which is {source.field_type}",
                place=place,
                hint="date and time transforms need dates or timestamps; truncate needs numbers, strings or binary",
            )
        name = part.name or partition_field_name(part.column, str(transform))
        fields.append(PartitionField(source.field_id, PARTITION_FIELD_ID_START + number, transform, name))
        if part.name is None and isinstance(transform, IdentityTransform):
            continue
        if name in schema.column_names:
            raise InvalidInput(f"the partition field `{name}` has the name of a column", place=place)
    return PartitionSpec(*fields)


def _refuse_unwritable_version(properties: Mapping[str, str], place: str) -> None:
    version = properties.get("format-version", "2")
    if version not in ("1", "2", "3"):
        raise InvalidInput(f"there is no format version {version}", place=place, hint="it is 1, 2 or 3")


def _nearest(catalog: Catalog, namespace: str, table: str) -> str:
    with translate_errors("catalog"):
        if not catalog.namespace_exists(namespace):
            return f"there is no namespace `{namespace}` either"
    tables = list_tables(catalog, namespace)
    near = difflib.get_close_matches(table, tables, n=3)
    return f"tables in {namespace}: {', '.join(near or tables) or 'none'}"
