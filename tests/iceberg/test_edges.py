"""The edges of the commit on real tables: expiry, orphans, folders, CREATE … AS, and a catalog that is away."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from lakehouse import PEOPLE, Lakehouse, files_below, insert, people, rows_of, write
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.serializers import FromInputFile
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from lakeproof.errors import CommitConflict, CommitUnknown, InvalidInput, Unavailable
from lakeproof.iceberg.committing.whole_file_commits import append
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables import catalogs
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.creation import publish, stage_table
from lakeproof.iceberg.tables.evolution import alter_properties
from lakeproof.iceberg.tables.refs import create_tag
from lakeproof.iceberg.tables.tables import create_table, drop_table, find_table, load_table, rename_table
from lakeproof.iceberg.upkeep import expire
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files

EVER = 2**62
FAST = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "5"}


def snapshots(table: Table) -> list[int]:
    return [each.snapshot_id for each in table.metadata.snapshots]


def _ignored(_answer: object) -> None:
    """What an event handler has no use for."""


def meanwhile(lake: Lakehouse, what: Any, verb: str = "UPDATE") -> None:
    """Something that happens once, between what the next writer has read and its swap."""
    left = [what]

    def before(_c: Any, _d: Any, statement: str, *_more: Any) -> None:
        if statement.startswith(verb) and left:
            left.pop()()

    event.listen(lake.catalog.engine, "before_cursor_execute", before)  # type: ignore[attr-defined]


# ---------------------------------------------------------------- A7: expiry and tags


def test_a7_a_tag_made_during_an_expiry_stays_with_its_files(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(properties=FAST), people(1)), people(2))
    old = snapshots(table)[0]
    other = open_catalog(lake.uri, lake.warehouse)
    meanwhile(lake, lambda: create_tag(load_table(other, "t"), "kept", old))
    done = expire_snapshots(table, older_than_ms=EVER, retain_last=1)
    assert done.snapshots == ()
    assert set(lake.load().metadata.refs) == {"main", "kept"}
    assert rows_of(lake.as_pyiceberg_opens_it(), old) == [(1, "x")]


def test_a7_two_expiries_at_once_agree(lake: Lakehouse) -> None:
    table = insert(insert(insert(lake.create(properties=FAST), people(1)), people(2)), people(3))
    other = open_catalog(lake.uri, lake.warehouse)
    meanwhile(lake, lambda: expire_snapshots(load_table(other, "t"), older_than_ms=EVER, retain_last=1))
    assert expire_snapshots(table, older_than_ms=EVER, retain_last=1).snapshots == ()
    assert len(snapshots(lake.load())) == 1
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x"), (3, "x")]


class Server(NoopCatalog):
    """A catalog that is told requirements and updates, as a REST server is, and cannot be asked about new tags."""

    def __init__(self, lake: Lakehouse) -> None:
        super().__init__("lakeproof")
        self.lake, self.before_commit = lake, lambda: None

    def load_table(self, identifier: Any) -> Table:
        table = self.lake.catalog.load_table(identifier)
        return Table(table.name(), table.metadata, table.metadata_location, table.io, self)

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> Any:
        self.before_commit()
        return self.lake.catalog.commit_table(table, requirements, updates)


def test_a7_a_server_that_drops_a_new_tag_is_told_of_and_its_files_stay(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(properties=FAST), people(1)), people(2))
    old, server = snapshots(table)[0], Server(lake)
    before = files_below(table.location())
    server.before_commit = lambda: _ignored(create_tag(lake.load(), "lost", old))
    with pytest.raises(CommitConflict, match="`lost` was made meanwhile"):
        expire_snapshots(server.load_table(("default", "t")), older_than_ms=EVER, retain_last=1)
    assert before < files_below(table.location())


def test_a7_the_same_without_the_question_loses_the_tag(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expire.AssertRefs, "validate", lambda self, metadata: None)
    table = insert(insert(lake.create(properties=FAST), people(1)), people(2))
    other = open_catalog(lake.uri, lake.warehouse)
    read, once = expire._to_expire, [True]

    def then_a_tag(*told: Any) -> Any:
        found = read(*told)
        if once:
            once.pop()
            create_tag(load_table(other, "t"), "kept", snapshots(table)[0])
        return found

    monkeypatch.setattr(expire, "_to_expire", then_a_tag)
    expire_snapshots(table, older_than_ms=EVER, retain_last=1)
    assert set(lake.load().metadata.refs) == {"main"}


# ---------------------------------------------------------------- A9: CREATE … AS


def test_a9_a_table_is_visible_with_its_first_snapshot(lake: Lakehouse) -> None:
    staged = stage_table(lake.catalog, "made", PEOPLE)
    files = write(staged.table, people(1, 2))
    assert find_table(lake.catalog, "made") is None
    table = publish(staged, files)
    assert rows_of(lake.as_pyiceberg_opens_it("made")) == [(1, "x"), (2, "x")]
    assert (len(snapshots(table)), snapshots(table)) == (1, snapshots(lake.load("made")))
    insert(lake.load("made"), people(3))
    assert len(rows_of(lake.as_pyiceberg_opens_it("made"))) == 3
    assert remove_orphan_files(lake.load("made"), older_than_ms=EVER, dry_run=True).files == ()


def test_a9_a_name_that_was_taken_meanwhile_stays_whose_it_is(lake: Lakehouse) -> None:
    staged = stage_table(lake.catalog, "t", PEOPLE)
    files = write(staged.table, people(1))
    insert(lake.create(), people(7))
    with pytest.raises(InvalidInput, match="already a table"):
        publish(staged, files)
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(7, "x")]
    folder = Path(staged.table.location().removeprefix("file://"))
    assert sorted(path.suffix for path in folder.rglob("*.avro")) == []


@pytest.mark.parametrize("arrives", [True, False], ids=["it arrived", "it was lost on its way"])
def test_a9_a_lost_answer_makes_one_table(lake: Lakehouse, arrives: bool) -> None:
    staged = stage_table(lake.catalog, "made", PEOPLE, properties=FAST)
    files = write(staged.table, people(1))
    engine = lake.catalog.engine  # type: ignore[attr-defined]

    def cut(connection: Any, cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        if statement.startswith("INSERT"):
            event.remove(engine, "before_cursor_execute", cut)
            if arrives:
                cursor.execute(statement, parameters)
                cursor.connection.commit()
            raise OperationalError(statement, parameters, ConnectionError("cut"))

    event.listen(engine, "before_cursor_execute", cut)
    table = publish(staged, files)
    assert table.metadata.table_uuid == staged.table.metadata.table_uuid
    assert rows_of(lake.as_pyiceberg_opens_it("made")) == [(1, "x")]


def test_a9_a_table_of_which_nobody_knows_keeps_its_files(lake: Lakehouse) -> None:
    staged = stage_table(lake.catalog, "made", PEOPLE, properties=FAST)
    files = write(staged.table, people(1))
    engine = lake.catalog.engine  # type: ignore[attr-defined]

    def away(_c: Any, _d: Any, statement: str, parameters: Any, *_more: Any) -> None:
        if statement.startswith("INSERT"):
            sent.append(statement)
        if sent:
            raise OperationalError(statement, parameters, ConnectionError("cut"))

    sent: list[str] = []
    event.listen(engine, "before_cursor_execute", away)
    with pytest.raises(CommitUnknown, match="nobody knows whether table"):
        publish(staged, files)
    event.remove(engine, "before_cursor_execute", away)
    left = sorted(Path(name).suffix for name in files_below(staged.table.location()))
    assert left == [".avro", ".avro", ".json", ".parquet"]


# ---------------------------------------------------------------- A10: folders


def test_a10_a_renamed_table_does_not_share_its_folder(lake: Lakehouse) -> None:
    insert(lake.create("sales"), people(1))
    rename_table(lake.catalog, "sales", "sales_old")
    insert(lake.create("sales"), people(2))
    insert(lake.load("sales_old"), people(3))
    assert lake.load("sales").location() != lake.load("sales_old").location()
    remove_orphan_files(lake.load("sales"), older_than_ms=EVER, allow_young=True)
    assert rows_of(lake.as_pyiceberg_opens_it("sales_old")) == [(1, "x"), (3, "x")]
    assert rows_of(lake.as_pyiceberg_opens_it("sales")) == [(2, "x")]


def test_a10_a_dropped_table_leaves_its_folder_to_nobody(lake: Lakehouse) -> None:
    dropped = insert(lake.create(), people(1))
    drop_table(lake.catalog, "t")
    assert lake.create().location() != dropped.location()
    lake.catalog.register_table(("default", "again"), dropped.metadata_location)
    assert rows_of(lake.as_pyiceberg_opens_it("again")) == [(1, "x")]


def test_a10_of_two_who_make_a_table_at_once_each_has_a_folder(lake: Lakehouse) -> None:
    staged = [stage_table(lake.catalog, "t", PEOPLE).table.location() for _ in range(3)]
    assert len(set(staged)) == 3


def test_a10_orphan_removal_refuses_a_folder_that_two_tables_share(lake: Lakehouse) -> None:
    folder = str(lake.folder / "shared")
    for name in ("one", "two"):
        insert(create_table(lake.catalog, name, PEOPLE, location=folder), people(1))
    before = files_below(folder)
    for name in ("one", "two"):
        with pytest.raises(InvalidInput, match="another table lies in the same folder"):
            remove_orphan_files(lake.load(name), older_than_ms=EVER, allow_young=True)
    assert files_below(folder) == before


def test_a10_purge_takes_the_files_of_what_it_drops(lake: Lakehouse) -> None:
    insert(lake.create(), people(1))
    other = open_catalog(lake.uri, lake.warehouse)

    def renamed() -> None:
        rename_table(other, "t", "kept")
        insert(create_table(other, "t", PEOPLE), people(2))

    meanwhile(lake, renamed, "DELETE")
    drop_table(lake.catalog, "t", purge=True)
    assert find_table(lake.catalog, "t") is None
    assert rows_of(lake.as_pyiceberg_opens_it("kept")) == [(1, "x")]


# ---------------------------------------------------------------- A11: what was expired meanwhile


@pytest.mark.parametrize("moved", [True, False], ids=["the head has moved on", "the file is simply gone"])
def test_a11_a_head_that_is_expired_while_it_is_read_is_a_lost_race(lake: Lakehouse, moved: bool) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    files, other, left = write(table, people(2)), open_catalog(lake.uri, lake.warehouse), [True]
    head = table.current_snapshot()
    assert head is not None

    def after(_c: Any, _d: Any, statement: str, *_more: Any) -> None:
        if statement.startswith("SELECT") and left:  # the pointer was read, what it leads to was not
            left.pop()
            if moved:
                insert(load_table(other, "t"), people(3))
                expire_snapshots(load_table(other, "t"), older_than_ms=EVER, retain_last=1)
            else:
                Path(head.manifest_list.removeprefix("file://")).unlink()

    event.listen(lake.catalog.engine, "after_cursor_execute", after)  # type: ignore[attr-defined]
    if moved:
        append(table, files)
        assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x"), (3, "x")]
    else:
        with pytest.raises(InvalidInput, match="a file of the table is missing"):
            append(table, files)


# ---------------------------------------------------------------- A12: a catalog that is away


@pytest.mark.parametrize("what", ["alter", "tag", "expire", "create", "drop"])
def test_a12_every_change_waits_for_a_busy_catalog(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(catalogs, "BUSY_TIMEOUT_MS", 50)
    insert(insert(lake.create(), people(1)), people(2))
    table = load_table(open_catalog(lake.uri, lake.warehouse), "t")
    holder = sqlite3.connect(lake.folder / "catalog.db", check_same_thread=False)
    holder.execute("begin immediate")
    threading.Timer(0.6, holder.rollback).start()
    started = time.monotonic()
    if what == "alter":
        assert alter_properties(table, {"a": "b"}).properties["a"] == "b"
    elif what == "tag":
        assert "v1" in create_tag(table, "v1").metadata.refs
    elif what == "expire":
        assert len(expire_snapshots(table, older_than_ms=EVER, retain_last=1).snapshots) == 1
    elif what == "create":
        made = create_table(table.catalog, "new", PEOPLE)
        metadata = Path(made.metadata_location.removeprefix("file://"))
        assert list(metadata.parent.iterdir()) == [metadata], "what was written for the busy database"
    else:
        drop_table(table.catalog, "t", purge=True)
    assert time.monotonic() - started > 0.3


@pytest.mark.parametrize("what", ["alter", "tag", "rename", "create"])
def test_metadata_that_was_removed_between_two_looks_is_looked_for_again(
    lake: Lakehouse, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Somebody else commits twice, and removes the old versions, just before PyIceberg reads one of them."""
    told = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    table = insert(lake.create(properties=told), people(1))
    other, name = open_catalog(lake.uri, lake.warehouse), {"rename": "u", "create": "v"}.get(what, "t")
    read = FromInputFile.table_metadata
    seen: list[Any] = []

    def late(*given: Any) -> Any:
        if not seen:
            seen.append(given)
            for number in range(3):
                alter_properties(load_table(other, name), {"other": str(number)})
        return read(*given)

    monkeypatch.setattr(FromInputFile, "table_metadata", late)
    if what == "alter":
        found = alter_properties(table, {"a": "b"})
    elif what == "tag":
        found = create_tag(table, "v1")
    elif what == "rename":
        found = rename_table(lake.catalog, "t", "u")
    else:
        found = create_table(lake.catalog, "v", PEOPLE, properties=told)
    assert seen
    assert found.properties["other"] == "2"
    assert load_table(lake.catalog, name).properties["other"] == "2"


@pytest.mark.parametrize("what", ["alter", "tag", "expire", "load"])
def test_a12_an_outage_is_told_as_one(lake: Lakehouse, what: str) -> None:
    table = insert(insert(lake.create(), people(1)), people(2))
    engine = lake.catalog.engine  # type: ignore[attr-defined]

    def away(_c: Any, _d: Any, statement: str, parameters: Any, *_more: Any) -> None:
        raise OperationalError(statement, parameters, ConnectionError("gone"))

    event.listen(engine, "before_cursor_execute", away)
    calls = {
        "alter": lambda: alter_properties(table, {"a": "b"}),
        "tag": lambda: create_tag(table, "v1"),
        "expire": lambda: expire_snapshots(table, older_than_ms=EVER, retain_last=1),
        "load": lambda: load_table(lake.catalog, "t"),
    }
    with pytest.raises(Unavailable, match="does not answer"):
        calls[what]()
    event.remove(engine, "before_cursor_execute", away)
    assert len(snapshots(lake.load())) == 2
