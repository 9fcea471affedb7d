"""Metadata of format version 3: made, upgraded, written whole, refused where a part would be lost."""

import gzip
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lakehouse import PEOPLE, Lakehouse, files_below, insert, path_of, people, rows_of, write
from test_other_catalogs import OnlyCommitTable

from lakeproof.commit import Command, TableChange
from lakeproof.commit.policy import LAKEPROOF
from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.commit import no_hook
from lakeproof.iceberg.committing.whole_file_commits import append
from lakeproof.iceberg.format_v3.metadata import lost
from lakeproof.iceberg.pyiceberg_names import IntegerType, Table
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.creation import publish, stage_table
from lakeproof.iceberg.tables.evolution import AddColumn, alter_properties, alter_schema
from lakeproof.iceberg.tables.refs import create_tag
from lakeproof.iceberg.tables.registering import register_table
from lakeproof.iceberg.tables.replacing import Replacing, replace_with_rows, replace_without_rows, replacement
from lakeproof.iceberg.tables.tables import create_table
from lakeproof.iceberg.upkeep.expire import expire_snapshots

THREE = {"format-version": "3"}


def said(table: Table) -> dict[str, Any]:
    """The metadata file as it lies there."""
    found: dict[str, Any] = json.loads(path_of(table.metadata_location).read_text())
    return found


def test_a_table_is_made_written_and_read_by_pyiceberg(lake: Lakehouse) -> None:
    table = lake.create(properties=THREE)
    assert (said(table)["format-version"], said(table)["next-row-id"]) == (3, 0)
    table = insert(insert(table, people(1, 2)), people(3))
    assert [(each["first-row-id"], each["added-rows"]) for each in said(table)["snapshots"]] == [(0, 2), (2, 1)]
    assert said(table)["next-row-id"] == 3
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x"), (3, "x")]


def test_a_table_made_with_its_rows_has_ids_from_the_start(lake: Lakehouse) -> None:
    staged = stage_table(lake.catalog, "t", PEOPLE, properties=THREE)
    table = publish(staged, write(staged.table, people(1, 2, 3)))
    assert (table.format_version, said(table)["next-row-id"], said(table)["snapshots"][0]["first-row-id"]) == (3, 3, 0)
    assert rows_of(insert(table, people(4))) == [(n, "x") for n in (1, 2, 3, 4)]


@pytest.mark.parametrize("version", ["1", "2"])
def test_an_upgrade_keeps_what_is_there(lake: Lakehouse, version: str) -> None:
    before = insert(lake.create(properties={"format-version": version}), people(1, 2))
    table = alter_properties(before, {**THREE, "a": "b"})
    assert (table.format_version, table.properties["a"], said(table)["next-row-id"]) == (3, "b", 0)
    assert table.current_snapshot() == before.current_snapshot()
    assert alter_properties(table, THREE).metadata_location == table.metadata_location
    assert rows_of(insert(table, people(3))) == [(1, "x"), (2, "x"), (3, "x")]
    assert said(lake.load())["next-row-id"] == 3
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x"), (3, "x")]


@pytest.mark.parametrize("version", ["1", "2", "4", "x"])
def test_there_is_no_way_back_and_none_to_what_is_not_known(lake: Lakehouse, version: str) -> None:
    table = lake.create(properties=THREE)
    with pytest.raises(InvalidInput, match=r"cannot go back|no format version"):
        alter_properties(table, {"format-version": version})
    assert lake.load().metadata_location == table.metadata_location


def test_every_other_change_of_metadata_works_too(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(properties=THREE), people(1)), people(2))
    table = create_tag(table, "kept")
    table = alter_schema(table, [AddColumn("more", IntegerType())])
    table = alter_properties(table, {"x": "y"})
    table = expire_snapshots(table, older_than_ms=2**60, retain_last=1).table
    assert (table.format_version, said(table)["next-row-id"], len(table.metadata.snapshots)) == (3, 2, 1)
    lake.catalog.rename_table(("default", "t"), ("default", "u"))
    assert rows_of(lake.as_pyiceberg_opens_it("u")) == [(1, "x", None), (2, "x", None)]


def test_compressed_metadata(lake: Lakehouse) -> None:
    table = insert(lake.create(properties={**THREE, "write.metadata.compression-codec": "gzip"}), people(1))
    assert rows_of(insert(table, people(2))) == [(1, "x"), (2, "x")]


def test_the_request_of_other_catalogs_says_which_ids_are_taken(lake: Lakehouse) -> None:
    """A REST catalog writes the metadata itself: it is told the version, and of each snapshot its ids."""
    sent: list[Any] = []

    class Rest(OnlyCommitTable):
        def commit_table(self, table: Table, requirements: Any, updates: Any) -> Any:
            sent.extend(json.loads(each.model_dump_json()) for each in updates)
            return super().commit_table(table, requirements, updates)

    insert(lake.create(), people(1))
    catalog = Rest(lake.catalog)
    table = alter_properties(catalog.load_table(("default", "t")), THREE)
    table = append(table, write(table, people(2, 3))).table
    assert sent[0] == {"action": "upgrade-format-version", "format-version": 3}
    added = next(each["snapshot"] for each in sent if each["action"] == "add-snapshot")
    assert (added["first-row-id"], added["added-rows"]) == (0, 3)
    assert said(lake.load())["next-row-id"] == 3


def test_tables_in_memory(tmp_path: Path) -> None:
    catalog = open_catalog("memory:", str(tmp_path))
    table = insert(create_table(catalog, "t", PEOPLE, properties=THREE), people(1))
    assert (table.format_version, rows_of(table)) == (3, [(1, "x")])


# ---------------------------------------------------------------- what is refused


def planted(lake: Lakehouse, change: Callable[[dict[str, Any]], Any]) -> Table:
    """The table as another engine's metadata file says it."""
    table = insert(lake.create(properties=THREE), people(1))
    metadata = said(table)
    change(metadata)
    target = path_of(table.location()) / "metadata" / "00009-theirs.metadata.json"
    target.write_text(json.dumps(metadata))
    with sqlite3.connect(lake.folder / "catalog.db") as connection:
        connection.execute("update iceberg_tables set metadata_location = ?", (f"file://{target}",))
    return lake.load()


def encryption_keys(metadata: dict[str, Any]) -> None:
    metadata["encryption-keys"] = [{"key-id": "k", "encrypted-key-metadata": "AA=="}]


def key_id(metadata: dict[str, Any]) -> None:
    metadata["snapshots"][0]["key-id"] = "k"


def encrypted(metadata: dict[str, Any]) -> None:
    metadata["properties"]["encryption.key-id"] = "k"


@pytest.mark.parametrize("change", [encryption_keys, key_id, encrypted])
def test_what_would_be_lost_is_refused_before_anything_is_written(lake: Lakehouse, change: Any) -> None:
    table = planted(lake, change)
    files = write(table, people(2))
    before = files_below(lake.warehouse)
    wanted = replacement(PEOPLE)
    made = Replacing(wanted, wanted.of(table), TableChange(Command.INSERT), LAKEPROOF, {})
    for command in (
        lambda: append(table, files),
        lambda: replace_without_rows(table, wanted),
        lambda: replace_with_rows(table, made, files, no_hook, reruns=0, reruns_left=False),
        lambda: alter_properties(table, {"a": "b"}),
        lambda: create_tag(table, "v"),
        lambda: alter_schema(table, [AddColumn("more", IntegerType())]),
    ):
        with pytest.raises(InvalidInput, match=r"would be lost|is encrypted"):
            command()
    assert files_below(lake.warehouse) == before
    assert rows_of(table) == [(1, "x")]  # it is read


def column_type(kind: Any) -> Callable[[dict[str, Any]], None]:
    def change(metadata: dict[str, Any]) -> None:
        metadata["schemas"][0]["fields"].append({"id": 9, "name": "odd", "required": False, "type": kind})

    return change


def two_sources(metadata: dict[str, Any]) -> None:
    field = {"source-ids": [1, 2], "field-id": 1000, "name": "both", "transform": "bucket[4]"}
    metadata["partition-specs"][0]["fields"].append(field)


def version_four(metadata: dict[str, Any]) -> None:
    metadata["format-version"] = 4


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (column_type("variant"), "`odd` is of type variant"),
        (column_type("geometry(srid:4326)"), "`odd` is of type geometry"),
        (
            column_type({"type": "list", "element-id": 10, "element": "variant", "element-required": False}),
            "`element` is of type variant",
        ),
        (two_sources, "`both` is a transform of several columns"),
        (version_four, "format version 4; 3 is the newest"),
    ],
)
def test_what_cannot_be_read_is_named(lake: Lakehouse, change: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        planted(lake, change)
    [file] = Path(lake.warehouse).rglob("*theirs.metadata.json")
    with pytest.raises(InvalidInput, match=told):
        register_table(lake.catalog, "u", str(file))


def test_nothing_is_lost_of_what_is_known() -> None:
    raw = {"a": 1, "current-snapshot-id": -1, "refs": {}, "list": [{"b": "c"}], "none": None}
    assert lost(raw, {"a": 1, "list": [{"b": "c", "more": []}]}) == ()
    assert lost({**raw, "keys": [1]}, {"a": 1, "list": [{}]}) == ("list.b", "keys")
    assert lost({"a": 1}, {"a": 2}) == ("a",)
    assert lost({"initial-default": "00FF"}, {"initial-default": "00ff"}) == ()
    assert lost({"write-default": "NaN"}, {"write-default": None}) == ("write-default",)


def test_compressed_metadata_of_others_is_looked_into(lake: Lakehouse) -> None:
    table = planted(lake, encryption_keys)
    packed = path_of(table.metadata_location).with_name("00010-theirs.gz.metadata.json")
    packed.write_bytes(gzip.compress(path_of(table.metadata_location).read_bytes()))
    table = register_table(lake.catalog, "packed", f"file://{packed}")
    with pytest.raises(InvalidInput, match="encryption-keys"):
        append(table, write(table, people(2)))
