"""The public Iceberg specification taken literally, as an oracle for the shipped model.

An object store of named files with global counters, files that nobody reaches any more, the whole metadata history:
nothing is canonical, so the state counts are those of the public specification (github.com/Vanlightly/
table-formats-tlaplus, `iceberg/iceberg.fizz`) when its own checker exhausts it. Nothing of the product is imported,
not even the search: an oracle that shared code with what it judges would share its mistakes. It is one file, longer
than others here, so that it can be read beside the specification from top to bottom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

Mode = Literal["merge-on-read", "copy-on-write"]
Isolation = Literal["snapshot", "serializable"]
Command = Literal["", "INSERT", "UPDATE", "DELETE", "REWRITE"]
Phase = Literal[
    "READY", "READ_DATA_FILES", "WRITE_DATA_FILES", "WRITE_METADATA_FILES", "COMMIT", "COMMITTED", "ABORTED"
]
Status = Literal["added", "existing", "deleted"]
Content = Literal["data", "deletes"]
# Key, colour, letter. None matches anything in a predicate, leaves a column in SET, means "deleted" in an effect.
Row: TypeAlias = tuple[str | None, str | None, str | None]
Rows: TypeAlias = tuple[Row, ...]
Position: TypeAlias = tuple[str, int]

OPERATION = {"INSERT": "append", "UPDATE": "overwrite", "DELETE": "overwrite", "REWRITE": "replace"}
IDLE = ("READY", "COMMITTED", "ABORTED")
ANYTHING: Row = (None, None, None)


class Configuration(NamedTuple):
    """The constants of the specification, and two switches: the DELETE check, and COW reads that apply delete files."""

    num_writers: int = 2
    max_write_ops: int = 3
    max_compactions: int = 0
    num_keys: int = 1
    num_colours: int = 2
    num_letters: int = 1
    update_mode: Mode = "merge-on-read"
    delete_mode: Mode = "merge-on-read"
    isolation: Isolation = "snapshot"
    allow_updates: bool = True
    allow_deletes: bool = True
    delete_check: bool = False
    spec_artefacts: bool = True

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """The values of each column."""
        keys, colours, letters = ("jack", "sarah", "tom"), ("red", "blue", "green"), ("A", "B", "C")
        return keys[: self.num_keys], colours[: self.num_colours], letters[: self.num_letters]

    def row_delta(self, command: Command) -> bool:
        """Whether the command writes delete files instead of rewriting data files."""
        return (command == "UPDATE" and self.update_mode == "merge-on-read") or (
            command == "DELETE" and self.delete_mode == "merge-on-read"
        )


class Entry(NamedTuple):
    """One line of a manifest."""

    status: Status
    sequence: int
    snapshot_id: int
    path: str


class Manifest(NamedTuple):
    """All files of one content after one commit; its file counts are those of its entries, so they are not kept."""

    entries: tuple[Entry, ...]
    snapshot_id: int
    min_sequence: int


class ManifestList(NamedTuple):
    """The names of the two merged manifests; None: the table never had a delete file."""

    data: str
    deletes: str | None


class Snapshot(NamedTuple):
    """One commit."""

    sequence: int
    snapshot_id: int
    operation: str
    manifest_list: str


class Metadata(NamedTuple):
    """One version of the table with all snapshots before it."""

    version: int = 0
    snapshots: tuple[Snapshot, ...] = ()
    last_sequence: int = 0


T = TypeVar("T")


class Folder(NamedTuple, Generic[T]):
    """The stored files of one kind; `named` counts the names ever given: a deleted file's name is not given again."""

    files: tuple[tuple[str, T], ...] = ()
    named: int = 0

    def read(self, name: str) -> T:
        """The file of that name."""
        return dict(self.files)[name]

    def write(self, name: str, file: T) -> Folder[T]:
        """The folder with one more file, under a name of its own."""
        return Folder((*self.files, (name, file)), self.named + 1)

    def without(self, names: Iterable[str]) -> Folder[T]:
        """The folder after a writer cleaned up."""
        return Folder(tuple(file for file in self.files if file[0] not in names), self.named)


class Operation(NamedTuple):
    """What one writer is doing; all that it learned stays until it commits or aborts, as in the specification."""

    phase: Phase
    command: Command = ""
    scan_location: str = ""
    scan_snapshot: int = 0
    predicate: Row = ANYTHING
    values: Row = ANYTHING
    effect: Rows = ()
    positions: tuple[Position, ...] | None = None
    removed: tuple[str, ...] = ()
    new_rows: tuple[Rows, ...] = ()
    added: tuple[str, ...] = ()
    added_deletes: tuple[str, ...] = ()
    metadata_files: tuple[str, ...] = ()
    old_location: str = ""
    new_location: str = ""
    version: int = 0


class World(NamedTuple):
    """One state: the catalog's pointer, the object store, the writers, and the specification's auxiliary variables."""

    operations: tuple[Operation, ...]
    metadata: Folder[Metadata]
    catalog: str = "metadata-0"
    data: Folder[Rows] = Folder()
    deletes: Folder[tuple[Position, ...]] = Folder()
    manifests: Folder[Manifest] = Folder()
    lists: Folder[ManifestList] = Folder()
    metadata_versions: tuple[int, ...] = ()  # of every metadata file ever written: two writers may write the same one
    write_ops: int = 0
    compactions: int = 0
    aborts: int = 0
    inserting: tuple[str, ...] = ()
    history: tuple[tuple[int, str | None, int, str | None], ...] = ()  # version, key, column, value
    committed: tuple[str, ...] = ()  # the metadata file of each version

    def table(self) -> Metadata:
        """The current metadata."""
        return self.metadata.read(self.catalog)

    def expected(self, key: str, column: int, version: int) -> str | None:
        """What the linearized history says that a reader of that version finds; None: no such row."""
        for at, of_key, of_column, value in reversed(self.history):
            if at <= version and of_key == key and of_column == column:
                return value
        return None

    def manifest(self, snapshot: Snapshot, content: Content) -> Manifest | None:
        """The snapshot's manifest of that content; None: it has none."""
        names = self.lists.read(snapshot.manifest_list)
        name = names.data if content == "data" else names.deletes
        return None if name is None else self.manifests.read(name)

    def entries(self, snapshot: Snapshot, content: Content) -> tuple[Entry, ...]:
        """The entries of that manifest; none where there is no manifest."""
        manifest = self.manifest(snapshot, content)
        return manifest.entries if manifest else ()

    def live(self, metadata: Metadata, content: Content) -> list[Entry]:
        """The live files of that content at the metadata's newest snapshot."""
        entries = self.entries(metadata.snapshots[-1], content) if metadata.snapshots else ()
        return [entry for entry in entries if entry.status != "deleted"]

    def scan(self, location: str, predicate: Row) -> list[tuple[str, int, Row]]:
        """The matching rows of that version with the places where they lie, file by file."""
        metadata = self.metadata.read(location)
        deletes = [(entry.sequence, self.deletes.read(entry.path)) for entry in self.live(metadata, "deletes")]
        return [
            (entry.path, position, row)
            for entry in self.live(metadata, "data")
            for position, row in enumerate(self.data.read(entry.path))
            if matches(row, predicate)
            and not any(at >= entry.sequence and (entry.path, position) in deleted for at, deleted in deletes)
        ]

    def now(self, writer: int, operation: Operation, **changes: Any) -> World:
        """The world in which the writer has gone on."""
        operations = (*self.operations[:writer], operation, *self.operations[writer + 1 :])
        return self._replace(operations=operations, **changes)


def matches(row: Row, predicate: Row) -> bool:
    """Whether the row has each value that the predicate names."""
    key, colour, letter = predicate
    return key in (None, row[0]) and colour in (None, row[1]) and letter in (None, row[2])


def updated(row: Row, values: Row) -> Row:
    """The row after SET."""
    return (row[0], values[1] or row[1], values[2] or row[2])


def carried_out(operation: Operation, rows: Iterable[Row]) -> tuple[Rows, Rows]:
    """The rows after an UPDATE or DELETE, and what the history shall say of those that it touched."""
    kept: list[Row] = []
    effect: list[Row] = []
    for row in rows:
        if not matches(row, operation.predicate):
            kept.append(row)
        elif operation.command == "DELETE":
            effect.append((row[0], None, None))
        else:
            kept.append(updated(row, operation.values))
            effect.append(kept[-1])
    return tuple(kept), tuple(effect)


def removed_files(world: World, window: Iterable[Snapshot]) -> set[str]:
    """The data files that a snapshot of the window removed."""
    entries = (entry for snapshot in window for entry in world.entries(snapshot, "data"))
    return {entry.path for entry in entries if entry.status == "deleted"}


def adds_data_files(world: World, window: Iterable[Snapshot]) -> bool:
    """Whether a snapshot of the window added a data file; a rewrite adds only rows that were there."""
    window = [snapshot for snapshot in window if snapshot.operation != "replace"]
    return any(entry.status == "added" for snapshot in window for entry in world.entries(snapshot, "data"))


def new_delete_files(world: World, window: Iterable[Snapshot], scanned: int) -> list[str]:
    """The delete files that are in the window's snapshots and newer than the scanned sequence number."""
    window = [snapshot for snapshot in window if snapshot.operation == "overwrite"]
    entries = (entry for snapshot in window for entry in world.entries(snapshot, "deletes"))
    return [entry.path for entry in entries if entry.status != "deleted" and entry.sequence > scanned]


def data_manifest(old: Manifest | None, operation: Operation, sequence: int, snapshot_id: int) -> Manifest:
    """The data files after the commit: those removed are marked with this snapshot, those added are stamped."""
    entries = []
    for entry in old.entries if old else ():
        if entry.status != "deleted" and entry.path in operation.removed:
            entry = entry._replace(status="deleted", snapshot_id=snapshot_id)
        elif entry.status != "deleted":
            entry = entry._replace(status="existing")
        entries.append(entry)
    return merged(old, entries, operation.added, sequence, snapshot_id)


def delete_manifest(
    old: Manifest | None, operation: Operation, sequence: int, snapshot_id: int, oldest: int
) -> Manifest:
    """The delete files after the commit: those older than the oldest data file age out, those added are stamped."""
    entries = [
        entry._replace(status="deleted" if entry.sequence < oldest else "existing")
        for entry in (old.entries if old else ())
    ]
    return merged(old, entries, operation.added_deletes, sequence, snapshot_id)


def merged(
    old: Manifest | None, entries: list[Entry], added: Iterable[str], sequence: int, snapshot_id: int
) -> Manifest:
    """One manifest of the old entries and the new ones; what was deleted under an earlier snapshot is forgotten."""
    if old and all(entry.status == "deleted" for entry in old.entries):
        entries = []
    entries = entries + [Entry("added", sequence, snapshot_id, path) for path in added]
    kept = tuple(entry for entry in entries if entry.status != "deleted" or entry.snapshot_id == snapshot_id)
    return Manifest(kept, snapshot_id, min([sequence, *(entry.sequence for entry in entries)]))


def write_manifest(world: World, operation: Operation, manifest: Manifest) -> tuple[World, Operation, str]:
    """The manifest is stored, and its writer remembers the name to clean it up."""
    name = f"manifest-{world.manifests.named + 1}"
    operation = operation._replace(metadata_files=(*operation.metadata_files, name))
    return world._replace(manifests=world.manifests.write(name, manifest)), operation, name


def clean_up(world: World, operation: Operation) -> World:
    """The store without the metadata files of a commit that did not happen; its data files stay, as garbage."""
    return world._replace(
        manifests=world.manifests.without(operation.metadata_files),
        lists=world.lists.without(operation.metadata_files),
        metadata=world.metadata.without(operation.metadata_files),
    )


Step: TypeAlias = tuple[str, World]


class LiteralTwin(NamedTuple):
    """The specification under one configuration: where it starts, its steps, its properties."""

    constants: Configuration

    def start(self) -> World:
        """An empty table and writers that are ready."""
        metadata = Folder[Metadata]().write("metadata-0", Metadata())
        return World((Operation("READY"),) * self.constants.num_writers, metadata)

    def steps(self, world: World) -> Iterator[Step]:
        """Every step that some writer can take, named `w0 …`, with the world after it."""
        for writer, operation in enumerate(world.operations):
            if operation.phase in IDLE:
                taken: Iterable[Step] = self.start_operation(world, writer)
            elif operation.phase == "READ_DATA_FILES":
                taken = [self.read_data_files(world, writer, operation)]
            elif operation.phase == "WRITE_DATA_FILES":
                taken = [self.write_data_files(world, writer, operation)]
            elif operation.phase == "WRITE_METADATA_FILES":
                taken = [self.write_metadata_files(world, writer, operation)]
            else:
                taken = [self.commit(world, writer, operation)]
            for name, after in taken:
                yield f"w{writer} {name}", after

    # Starting: the specification bounds its workload here, by what the history says at the current version.

    def matching(self, world: World, predicate: Row) -> int:
        """How many rows of the history match the predicate at the current version."""
        version, count = world.table().version, 0
        for key in self.constants.columns[0]:
            colour, letter = world.expected(key, 1, version), world.expected(key, 2, version)
            count += matches((colour and key, colour, letter), predicate)
        return count

    def start_operation(self, world: World, writer: int) -> Iterator[Step]:
        """An idle writer starts a command at the current version."""
        constants, snapshots = self.constants, world.table().snapshots
        scan = (world.catalog, snapshots[-1].snapshot_id if snapshots else 0)
        if world.compactions < constants.max_compactions and snapshots:
            operation = Operation("READ_DATA_FILES", "REWRITE", *scan)
            yield "start REWRITE", world.now(writer, operation, compactions=world.compactions + 1)
        if world.write_ops == constants.max_write_ops:
            return
        for key, colour, letter in product(*constants.columns):
            new: Row = (key, colour, letter)
            if key not in world.inserting and not self.matching(world, (key, None, None)):
                operation = Operation("WRITE_DATA_FILES", "INSERT", *scan, effect=(new,), new_rows=((new,),))
                pending = tuple(sorted((*world.inserting, key)))
                after = world.now(writer, operation, write_ops=world.write_ops + 1, inserting=pending)
                yield f"start INSERT {key} {colour} {letter}", after
        for command, predicate, values in self.row_commands(world):
            operation = Operation("READ_DATA_FILES", command, *scan, predicate, values)
            change = "SET " * any(values) + " ".join(value for value in values if value)
            where = " ".join(value for value in predicate if value)
            name = " ".join(filter(None, ("start", command, change, "WHERE", where)))
            yield name, world.now(writer, operation, write_ops=world.write_ops + 1)

    def row_commands(self, world: World) -> Iterator[tuple[Command, Row, Row]]:
        """Each DELETE and UPDATE with a predicate on one column that changes how many rows match it."""
        keys, colours, letters = self.constants.columns
        on_key: list[Row] = [(key, None, None) for key in keys]
        on_colour: list[Row] = [(None, colour, None) for colour in colours]
        on_letter: list[Row] = [(None, None, letter) for letter in letters]
        for predicate in (*on_key, *on_colour, *on_letter):
            count = self.matching(world, predicate)
            if count and self.constants.allow_deletes:
                yield "DELETE", predicate, ANYTHING
            for values in (*on_colour, *on_letter) if count and self.constants.allow_updates else ():
                already = (predicate[0], values[1] or predicate[1], values[2] or predicate[2])
                if already != predicate and self.matching(world, already) != count:
                    yield "UPDATE", predicate, values

    # Reading and writing rows.

    def read_data_files(self, world: World, writer: int, operation: Operation) -> Step:
        """The writer scans its snapshot and derives the rows to write and the files or positions to remove."""
        found = world.scan(operation.scan_location, operation.predicate)
        paths = tuple(dict.fromkeys(path for path, _, _ in found))
        read = operation._replace(phase="WRITE_DATA_FILES")
        if operation.command == "REWRITE":
            read = read._replace(removed=paths, new_rows=(tuple(row for _, _, row in found),))
        elif self.constants.row_delta(operation.command):
            rows, effect = carried_out(operation, [row for _, _, row in found])
            positions = tuple((path, position) for path, position, _ in found)
            new_rows = (rows,) if operation.command == "UPDATE" else ()
            read = read._replace(positions=positions, new_rows=new_rows, effect=effect)
        else:
            files = [carried_out(operation, self.rows_to_rewrite(world, operation, path)) for path in paths]
            effect = tuple(row for _, changed in files for row in changed)
            read = read._replace(removed=paths, new_rows=tuple(rows for rows, _ in files), effect=effect)
        return "read data files", world.now(writer, read)

    def rows_to_rewrite(self, world: World, operation: Operation, path: str) -> Iterable[Row]:
        """The rows that copy-on-write copies; the specification forgets that delete files may have removed some."""
        if self.constants.spec_artefacts:
            return world.data.read(path)
        return [row for file, _, row in world.scan(operation.scan_location, ANYTHING) if file == path]

    def write_data_files(self, world: World, writer: int, operation: Operation) -> Step:
        """The writer stores its data files, and its delete file if it has one."""
        data, deletes = world.data, world.deletes
        written = operation._replace(phase="WRITE_METADATA_FILES")
        for rows in operation.new_rows:
            name = f"data-{data.named + 1}"
            data = data.write(name, rows)
            written = written._replace(added=(*written.added, name))
        if operation.positions is not None:
            name = f"delete-{deletes.named + 1}"
            deletes = deletes.write(name, operation.positions)
            written = written._replace(added_deletes=(name,))
        return "write data files", world.now(writer, written, data=data, deletes=deletes)

    # Writing metadata: validation against the current version, then the merged manifests.

    def refusal(self, world: World, operation: Operation) -> str | None:
        """The check that refuses the commit; None: the commit may go on."""
        if operation.command == "INSERT":
            return None
        snapshots, serializable = world.table().snapshots, self.constants.isolation == "serializable"
        at = [snapshot.snapshot_id for snapshot in snapshots].index(operation.scan_snapshot)
        window, scanned = snapshots[at + 1 :], snapshots[at].sequence
        if self.constants.row_delta(operation.command):
            if removed_files(world, window) & {path for path, _ in operation.positions or ()}:
                return "data_files_exist"
            asks = operation.command == "UPDATE" or self.constants.delete_check
            if asks and new_delete_files(world, window, scanned):
                return "no_new_delete_files"
            return "added_data_files" if serializable and adds_data_files(world, window) else None
        if operation.command != "REWRITE" and serializable and adds_data_files(world, window):
            return "added_data_files"
        deleted = {path for name in new_delete_files(world, window, scanned) for path, _ in world.deletes.read(name)}
        return "no_new_deletes_for_removed_files" if deleted & set(operation.removed) else None

    def write_metadata_files(self, world: World, writer: int, operation: Operation) -> Step:
        """The writer validates, then writes manifests, manifest list and metadata on top of the current version."""
        check = self.refusal(world, operation)
        if check is not None:
            return self.abort(world, writer, operation, check)
        table = world.table()
        sequence, snapshot_id, version = table.last_sequence + 1, world.metadata.named, table.version + 1
        old = world.manifest(table.snapshots[-1], "data") if table.snapshots else None
        data = data_manifest(old, operation, sequence, snapshot_id)
        world, operation, data_name = write_manifest(world, operation, data)
        if not set(operation.removed) <= {entry.path for entry in data.entries if entry.status == "deleted"}:
            return self.abort(world, writer, operation, "removed_files_were_live")
        oldest = min(sequence, old.min_sequence) if old else sequence
        old, deletes_name = world.manifest(table.snapshots[-1], "deletes") if table.snapshots else None, None
        if old or operation.added_deletes:
            deletes = delete_manifest(old, operation, sequence, snapshot_id, oldest)
            world, operation, deletes_name = write_manifest(world, operation, deletes)
        list_name = f"manifestlist-{world.lists.named + 1}"
        snapshot = Snapshot(sequence, snapshot_id, OPERATION[operation.command], list_name)
        location = f"metadata-{version}-uuid{world.metadata_versions.count(version) + 1}"
        written = operation._replace(
            phase="COMMIT",
            metadata_files=(*operation.metadata_files, list_name, location),
            old_location=world.catalog,
            new_location=location,
            version=version,
        )
        return "write metadata files", world.now(
            writer,
            written,
            lists=world.lists.write(list_name, ManifestList(data_name, deletes_name)),
            metadata=world.metadata.write(location, Metadata(version, (*table.snapshots, snapshot), sequence)),
            metadata_versions=tuple(sorted((*world.metadata_versions, version))),
        )

    def abort(self, world: World, writer: int, operation: Operation, check: str) -> Step:
        """The writer gives up: a check refused its commit."""
        return f"abort {check}", clean_up(world, operation).now(writer, Operation("ABORTED"), aborts=world.aborts + 1)

    def commit(self, world: World, writer: int, operation: Operation) -> Step:
        """The writer swaps the pointer and its effect enters the history, or it was too late and validates again."""
        if operation.old_location != world.catalog:
            again = operation._replace(phase="WRITE_METADATA_FILES", old_location="", new_location="")
            return "lose the swap", clean_up(world, operation).now(writer, again)
        history = tuple(
            (operation.version, row[0], column, row[column])
            for row in operation.effect
            for column in (1, 2)
            if operation.command != "UPDATE" or operation.values[column] is not None
        )
        inserted = {row[0] for row in operation.effect} if operation.command == "INSERT" else set()
        return "commit", world.now(
            writer,
            Operation("COMMITTED"),
            catalog=operation.new_location,
            inserting=tuple(key for key in world.inserting if key not in inserted),
            history=world.history + history,
            committed=(*world.committed, operation.new_location),
        )

    # Properties, in the specification's words and under its names.

    def consistent_read(self, world: World) -> bool:
        """A read of each key at each committed version gives the values that the history expects."""
        for version, location in enumerate(world.committed, start=1):
            found = [row for _, _, row in world.scan(location, ANYTHING)]
            for key in self.constants.columns[0]:
                expected = (key, world.expected(key, 1, version), world.expected(key, 2, version))
                rows = [row for row in found if row[0] == key]
                if rows != [expected] and (rows or expected != (key, None, None)):
                    return False
        return True

    def no_dangling_delete_files(self, world: World) -> bool:
        """No delete file of the current snapshot names a data file that is not live in it."""
        table = world.table()
        live = {entry.path for entry in world.live(table, "data")}
        named = (world.deletes.read(entry.path) for entry in world.live(table, "deletes"))
        return all(path in live for positions in named for path, _ in positions)

    def sequential_sequence_numbers(self, world: World) -> bool:
        """In every stored metadata file the sequence numbers of the snapshots are 1, 2, 3 …"""
        return all(
            snapshot.sequence == number
            for _, metadata in world.metadata.files
            for number, snapshot in enumerate(metadata.snapshots, start=1)
        )

    def operations_eventually_commit_or_abort(self, end: World) -> bool:
        """At the end no writer is in the middle of a command."""
        return all(operation.phase in IDLE for operation in end.operations)

    def all_snapshots_committed(self, end: World) -> bool:
        """At the end each command that the bounds allow has given a snapshot or aborted."""
        table, allowed = end.table(), self.constants.max_write_ops + self.constants.max_compactions
        return len(table.snapshots) + end.aborts == allowed and table.version == len(table.snapshots)


Property: TypeAlias = Callable[[LiteralTwin, World], bool]
ALWAYS: dict[str, Property] = {
    "ConsistentRead": LiteralTwin.consistent_read,
    "NoDanglingDeleteFiles": LiteralTwin.no_dangling_delete_files,
    "SequentialSequenceNumbers": LiteralTwin.sequential_sequence_numbers,
}
# "Eventually always" is "at the end": each step moves a writer on or spends a name, so no run is endless.
AT_THE_END: dict[str, Property] = {
    "OperationsEventuallyCommitOrAbort": LiteralTwin.operations_eventually_commit_or_abort,
    "AllSnapshotsCommitted": LiteralTwin.all_snapshots_committed,
}


class Verdicts(NamedTuple):
    """What the search found; `violated` gives each violated property the fewest steps that show it."""

    states: int
    violated: dict[str, int]
    exhausted: bool
    terminals: int
    depth: int


@cache  # two test files ask about the same configurations
def verdicts(*, max_states: int | None = None, **configuration: Any) -> Verdicts:
    """Every world of the configuration, level by level; a violation does not end the search, only `max_states` does."""
    twin = LiteralTwin(Configuration(**configuration))
    level, depth, terminals = [twin.start()], 0, 0
    seen, violated = set(level), dict[str, int]()
    while level and (max_states is None or len(seen) < max_states):
        following = []
        for world in level:
            after = [successor for _, successor in twin.steps(world)]
            terminals += not after
            for name, holds in (ALWAYS if after else ALWAYS | AT_THE_END).items():
                if name not in violated and not holds(twin, world):
                    violated[name] = depth
            for successor in after:
                if successor not in seen:
                    seen.add(successor)
                    following.append(successor)
        level, depth = following, depth + 1
    return Verdicts(len(seen), violated, exhausted=not level, terminals=terminals, depth=depth - 1)


MODES: tuple[Mode, ...] = ("merge-on-read", "copy-on-write")
ISOLATIONS: tuple[Isolation, ...] = ("snapshot", "serializable")
# Writers, write operations, compactions, keys, letters.
Sizes: TypeAlias = tuple[tuple[int, int, int, int, int], ...]
RACES: Sizes = ((2, 2, 0, 1, 1), (2, 2, 0, 2, 1), (2, 2, 1, 1, 1), (2, 2, 1, 2, 1))
RACES += ((2, 2, 2, 1, 1), (2, 3, 0, 1, 1), (3, 2, 1, 1, 1))
LONGER: Sizes = ((2, 4, 0, 1, 1), (1, 3, 2, 2, 1), (1, 4, 1, 2, 1))
LARGER: Sizes = ((2, 3, 0, 2, 1), (2, 3, 1, 1, 1), (2, 3, 0, 1, 2), (3, 3, 0, 1, 1))


def configurations() -> Iterator[Configuration]:
    """More than a hundred configurations, a second each, to compare another model's verdicts with the twin's."""
    for update_mode, delete_mode, isolation in product(MODES, MODES, ISOLATIONS):
        modes = Configuration(update_mode=update_mode, delete_mode=delete_mode, isolation=isolation)
        sizes = RACES + LONGER * (isolation == "snapshot")
        sizes += LARGER * (isolation == "snapshot" and update_mode == delete_mode)
        for writers, write_ops, compactions, keys, letters in sizes:
            sized = modes._replace(num_writers=writers, max_write_ops=write_ops, max_compactions=compactions)
            yield sized._replace(num_keys=keys, num_letters=letters)
            if delete_mode == "merge-on-read" and writers > 1:  # elsewhere the DELETE check changes nothing
                yield sized._replace(num_keys=keys, num_letters=letters, delete_check=True)
    for check in (False, True):
        yield Configuration(max_write_ops=4, num_colours=1, allow_updates=False, delete_check=check)
        yield Configuration(max_write_ops=4, allow_deletes=False, delete_check=check)
    yield Configuration(max_write_ops=2, allow_updates=False, allow_deletes=False)


FORGOTTEN_DELETES = (
    "A copy-on-write command copies every row of a file, also those that a delete file has removed: they come back. "
    "Iceberg reads a file with its delete files applied; `spec_artefacts=False` does so too."
)
LEFT_OVER_DELETES = (
    "One writer alone deletes a row of a file and then replaces the file: the delete file stays listed until it ages "
    "out and names a file that is gone. Iceberg allows this, no read is changed by it."
)
NOTHING_LEFT_TO_DO = (
    "Each key is there and neither UPDATE nor DELETE is allowed: fewer commands can start than the bound, which the "
    "formula takes for commands that got lost."
)


def artefacts(configuration: Configuration) -> dict[str, str]:
    """The properties that the specification violates there though Iceberg does nothing wrong, each with the reason."""
    c, reasons = configuration, dict[str, str]()
    modes = {c.update_mode, c.delete_mode}
    if c.num_keys > 1 and c.max_compactions > 0 and c.max_write_ops + c.max_compactions > 4:
        # Enough for a file of two rows, of which one is deleted before the file is replaced.
        if len(modes) == 2 and c.max_write_ops > 3:
            reasons["ConsistentRead"] = FORGOTTEN_DELETES
        if "merge-on-read" in modes:
            reasons["NoDanglingDeleteFiles"] = LEFT_OVER_DELETES
    if c.max_write_ops > c.num_keys and not (c.allow_updates or c.allow_deletes):
        reasons["AllSnapshotsCommitted"] = NOTHING_LEFT_TO_DO
    return reasons


KNOWN_ARTEFACTS = {
    configuration: reasons for configuration in configurations() if (reasons := artefacts(configuration))
}
