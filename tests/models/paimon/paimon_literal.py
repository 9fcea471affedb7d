"""The public Paimon specification read word for word: an object store of named files, a global file counter, and
garbage and the whole history kept in the state. It is slow and large on purpose: the shipped model must agree with it.

One file, so that it can be read beside the specification from top to bottom. Files are immutable here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from lakeproof.checker.model import Model, Outcome, Process, Step, always

READY, DATA, META, PREPARE, COMMIT, BAD = "ready", "write data", "write metadata", "prepare", "commit", "bad"


@dataclass(frozen=True)
class Constants:
    """The specification's constants, and switches for the ways in which we read it otherwise."""

    writers: int = 1
    compactors: int = 2
    partitions: int = 1
    buckets: int = 1
    max_level: int = 3
    put_if_absent: bool = True
    use_lock: bool = False
    dv_enabled: bool = True
    one_writer_per_bucket: bool = False
    streaming_sink: bool = False
    allow_deletes: bool = False
    max_write_ops: int = 2
    max_write_ops_per_key: int = 2
    max_write_ops_per_writer: int = 2
    max_compactions: int = 3
    max_compactions_per_compactor: int = 2
    col1: tuple[str, ...] = ("jack",)
    col2: tuple[str, ...] = ("red", "blue")
    col3: tuple[str, ...] = ("A",)
    guards: bool = False  # the extra guard clauses of its README
    prune_vectors: bool = False
    keep_deletes: bool = False
    read_vectors: bool = False

    def place(self, number: int) -> tuple[int, int]:
        """Keys, and where each bucket has one writer also writers, are dealt out to (partition, bucket) in turn."""
        return number // self.buckets % self.partitions, number % self.buckets

    def assigned(self, writer: int) -> list[tuple[str, int, int]]:
        """The (key, partition, bucket) that a writer instance works on."""
        keys = [(key, *self.place(number)) for number, key in enumerate(self.col1)]
        return [key for key in keys if not self.one_writer_per_bucket or key[1:] == self.place(writer)]


class Op(NamedTuple):
    """A write operation or a compaction of one writer instance."""

    state: str = READY
    partition: int = 0
    bucket: int = 0
    level: int = 0
    row: tuple[Any, ...] = ()  # sequence number, row kind, col1, col2, col3
    mask: tuple[bool, bool] = (False, False)
    data_file: str = ""
    removes: tuple[str, ...] = ()
    dv_file: str = ""
    tmp: str = ""
    version: int = 0
    metadata: tuple[str, ...] = ()


class Instance(NamedTuple):
    """A writer with its co-located compactor."""

    sequence: int = 0
    compactions: int = 0
    write: Op = Op()
    compact: Op = Op()


class World(NamedTuple):
    """The whole state of the specification."""

    objects: tuple[tuple[str, Any], ...] = ()
    instances: tuple[Instance, ...] = ()
    ops: int = 0
    compactions: int = 0
    ops_on: tuple[int, ...] = ()
    file_id: int = 0
    max_version: int = 0
    log: tuple[tuple[str, int, int, str], ...] = ()  # (key, column, version, value; "" after a delete)
    inserting: tuple[str, ...] = ()
    lock: int = -1


class Store:
    """The object store of one world while an action changes it, with the global counter that names files."""

    def __init__(self, world: World) -> None:
        self.files, self.counter = dict(world.objects), world.file_id

    def name(self, prefix: str) -> str:
        """The next file name."""
        self.counter += 1
        return f"{prefix}-{self.counter - 1}"

    def write(self, prefix: str, content: Any) -> str:
        """Put a new file."""
        name = self.name(prefix)
        self.files[name] = content
        return name

    def latest(self) -> int:
        """The latest snapshot version: how many snapshot files there are."""
        return sum(1 for name in self.files if name.startswith("snapshot"))

    def saved(self, world: World, **changes: Any) -> World:
        """The world with this store in it."""
        return world._replace(objects=tuple(sorted(self.files.items())), file_id=self.counter, **changes)


def merged(entries: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """Manifest entries without those whose ADD has its DELETE."""
    result: list[tuple[str, str, int]] = []
    for entry in entries:
        at = next((i for i, old in enumerate(result) if old[1] == entry[1]), -1)
        if entry[0] == "DELETE" and at >= 0:
            result.pop(at)
        else:
            result.append(entry)
    return result


def entries_of(store: Store, version: int, prefix: str = "") -> list[tuple[str, str, int]]:
    """The live manifest entries of a version."""
    snapshot = store.files.get(f"snapshot-{version}")
    lists = (snapshot[0], snapshot[1]) if snapshot else ()
    entries = [entry for name in lists for manifest in store.files[name] for entry in store.files[manifest]]
    return merged([entry for entry in entries if entry[1].startswith(prefix)])


def prefix_of(partition: int, bucket: int) -> str:
    """How data files of a bucket are called."""
    return f"p-{partition}_b-{bucket}_data"


def vectors_of(constants: Constants, store: Store, partition: int, bucket: int, version: int) -> dict[str, Any]:
    """The deletion vectors of a bucket in a version."""
    snapshot = store.files.get(f"snapshot-{version}")
    if not constants.dv_enabled or not snapshot or not snapshot[2]:
        return {}
    index = dict(store.files[snapshot[2]])
    return dict(store.files[index[partition, bucket]]) if (partition, bucket) in index else {}


def merge(store: Store, key: str, files: list[str], vectors: dict[str, Any], keep_deletes: bool = False) -> Any:
    """The key's row with the highest sequence number among the files; None after a delete, unless they are kept."""
    last = None
    for name in files:
        for position, row in enumerate(store.files[name][1]):
            deleted = position in vectors.get(name, ())
            if not deleted and row[2] == key and (last is None or row[0] > last[0]):
                last = row
    return None if last is None or (last[1] == "-D" and not keep_deletes) else last


def look_up(store: Store, key: str, place: tuple[int, int], version: int, vectors: dict[str, Any]) -> Any:
    """A read of one key at a version."""
    return merge(store, key, [entry[1] for entry in entries_of(store, version, prefix_of(*place))], vectors)


def logged(world: World, version: int, key: str, column: int) -> str:
    """What the linearised history says about a column at a version."""
    value = ""
    for entry in world.log:
        if entry[:2] == (key, column):
            if entry[2] > version:
                break
            value = entry[3]
    return value


def put(world: World, at: int, **changes: Any) -> tuple[Instance, ...]:
    """The instances with one changed."""
    return (*world.instances[:at], world.instances[at]._replace(**changes), *world.instances[at + 1 :])


def start_write(constants: Constants, world: World, own: str) -> Iterator[Outcome]:
    """StartInsertOperation, StartDeleteOperation, StartReadModifyUpdateOperation, StartStreamingSinkUpdateOperation."""
    store = Store(world)
    version = store.latest()
    for at, instance in enumerate(world.instances[: constants.writers]):
        busy = instance.write.state != READY or instance.sequence >= constants.max_write_ops_per_writer
        if busy or world.ops >= constants.max_write_ops:
            continue
        for key, partition, bucket in constants.assigned(at):
            for row, mask in rows_to_write(constants, world, store, version, (key, partition, bucket), instance):
                number = constants.col1.index(key)
                insert = row[1] == "+I"
                count = 1 if insert else world.ops_on[number] + 1
                inserting = tuple(sorted((*world.inserting, key))) if insert else world.inserting
                op = Op(DATA, partition, bucket, row=row, mask=mask)
                yield Outcome(
                    world._replace(
                        instances=put(world, at, write=op, sequence=instance.sequence + 1),
                        ops=world.ops + 1,
                        ops_on=(*world.ops_on[:number], count, *world.ops_on[number + 1 :]),
                        inserting=inserting,
                    ),
                    own,
                )


def rows_to_write(
    constants: Constants, world: World, store: Store, version: int, place: tuple[str, int, int], instance: Instance
) -> Iterator[tuple[tuple[Any, ...], tuple[bool, bool]]]:
    """The rows that an instance may write for a key, with the columns they change."""
    key, sequence = place[0], instance.sequence
    exists = logged(world, version, key, 3) != ""
    if not exists and key not in world.inserting:
        yield from (((sequence, "+I", key, a, b), (True, True)) for a in constants.col2 for b in constants.col3)
    if world.ops_on[constants.col1.index(key)] >= constants.max_write_ops_per_key:
        return
    if constants.allow_deletes and exists:
        yield (sequence, "-D", key, "", ""), (True, True)
    if constants.guards and version != 2:
        return
    if constants.streaming_sink:
        if exists:
            yield from (((sequence, "+U", key, a, b), (True, True)) for a in constants.col2 for b in constants.col3)
        return
    row = look_up(store, key, place[1:], version, vectors_of(constants, store, *place[1:], version))
    if row is not None:
        yield from (((sequence, "+U", key, a, row[4]), (True, False)) for a in constants.col2)
        yield from (((sequence, "+U", key, row[3], b), (False, True)) for b in constants.col3)


def start_compaction(constants: Constants, world: World, own: str) -> Iterator[Outcome]:
    """StartCompaction."""
    store = Store(world)
    version = store.latest()
    if world.compactions >= constants.max_compactions or (constants.guards and version not in (1, 3)):
        return
    for at, instance in enumerate(world.instances[: constants.compactors]):
        if instance.compact.state != READY or instance.compactions >= constants.max_compactions_per_compactor:
            continue
        for partition, bucket in sorted({place[1:] for place in constants.assigned(at)}):
            entries = entries_of(store, version, prefix_of(partition, bucket))
            for level in sorted({entry[2] for entry in entries if entry[2] < constants.max_level}):
                op = Op(DATA, partition, bucket, level)
                instances = put(world, at, compact=op, compactions=instance.compactions + 1)
                yield Outcome(world._replace(instances=instances, compactions=world.compactions + 1), own)


def write_data_as_writer(world: World, own: str) -> Iterator[Outcome]:
    """WriteDataFilesAsWriter."""
    for at, instance in enumerate(world.instances):
        op = instance.write
        if op.state == DATA:
            store = Store(world)
            name = store.write(prefix_of(op.partition, op.bucket), (0, (op.row,)))
            yield Outcome(
                store.saved(world, instances=put(world, at, write=op._replace(state=META, data_file=name))), own
            )


def write_data_as_compactor(constants: Constants, world: World, own: str) -> Iterator[Outcome]:
    """WriteDataFilesAsCompactor."""
    for at, instance in enumerate(world.instances):
        op = instance.compact
        if op.state != DATA:
            continue
        store = Store(world)
        version, prefix = store.latest(), prefix_of(op.partition, op.bucket)
        vectors = vectors_of(constants, store, op.partition, op.bucket, version)
        entries = entries_of(store, version, prefix)
        source = [entry[1] for entry in entries if entry[2] == op.level]
        rows, updated = [], set()
        for key, _, _ in constants.assigned(at):
            row = merge(store, key, source, vectors, constants.keep_deletes)
            if row is not None:
                if constants.dv_enabled and row[1] in ("-D", "+U"):
                    updated.add(key)
                if not constants.dv_enabled or row[1] != "-D":
                    rows.append(row)
        data_file = store.write(prefix, (op.level + 1, tuple(rows)))
        dv_file = ""
        kept = {name: set(deleted) for name, deleted in vectors.items()}
        if constants.prune_vectors:
            kept = {name: deleted for name, deleted in kept.items() if name not in source}
        if updated or len(kept) < len(vectors):
            for _, name, level in entries:
                for position, row in enumerate(store.files[name][1]):
                    if level > op.level and row[2] in updated:
                        kept.setdefault(name, set()).add(position)
            content = tuple(sorted((name, tuple(sorted(deleted))) for name, deleted in kept.items()))
            dv_file = store.write(f"p-{op.partition}_b-{op.bucket}_dv", content)
        op = op._replace(state=META, data_file=data_file, removes=tuple(source), dv_file=dv_file)
        yield Outcome(store.saved(world, instances=put(world, at, compact=op)), own)


def write_metadata(constants: Constants, world: World, own: str) -> Iterator[Outcome]:
    """WriteMetadataFiles."""
    for at, instance in enumerate(world.instances):
        for which in ("write", "compact"):
            op: Op = getattr(instance, which)
            if op.state != META:
                continue
            store = Store(world)
            version = store.latest()
            latest = store.files.get(f"snapshot-{version}")
            delta = [("ADD", op.data_file, store.files[op.data_file][0])]
            delta += [("DELETE", name, -1) for name in op.removes]
            manifest = store.write("manifest", tuple(delta))
            delta_list = store.write("manifestlist", (manifest,))
            base_name = store.name("manifestlist")
            base: tuple[str, ...] = ()
            metadata = [manifest, delta_list, base_name]
            if latest:
                entries = entries_of(store, version)
                if which == "compact" and any(entry[0] == "DELETE" for entry in merged(entries + delta)):
                    yield Outcome(store.saved(world, instances=put(world, at, compact=Op())), own)  # abort
                    continue
                metadata.append(store.write("manifest", tuple(entries)))
                base = (metadata[-1],)
            store.files[base_name] = base
            index = latest[2] if latest else ""
            if op.dv_file:
                content = {**dict(store.files[index] if index else ()), (op.partition, op.bucket): op.dv_file}
                index = store.write("index", tuple(sorted(content.items())))
            tmp = store.write("tmp-snapshot", (base_name, delta_list, index))
            state = PREPARE if constants.use_lock else COMMIT
            op = op._replace(state=state, tmp=tmp, version=version + 1, metadata=tuple(sorted((*metadata, tmp))))
            yield Outcome(store.saved(world, instances=put(world, at, **{which: op})), own)


def prepare_commit(world: World, own: str) -> Iterator[Outcome]:
    """PrepareCommit; the lock is freed when the snapshot is there already, which the specification forgets."""
    for at, instance in enumerate(world.instances):
        for which in ("write", "compact"):
            op: Op = getattr(instance, which)
            if op.state != PREPARE or world.lock >= 0:
                continue
            store = Store(world)
            if f"snapshot-{op.version}" in store.files:
                yield Outcome(retried(store, world, at, which, op), own)
            else:
                instances = put(world, at, **{which: op._replace(state=COMMIT)})
                yield Outcome(world._replace(instances=instances, lock=at), own)


def retried(store: Store, world: World, at: int, which: str, op: Op) -> World:
    """The metadata files are deleted, and written again from the start."""
    for name in op.metadata:
        store.files.pop(name, None)
    op = op._replace(state=META, tmp="", version=0, metadata=())
    return store.saved(world, instances=put(world, at, **{which: op}), lock=-1)


def commit(constants: Constants, world: World, own: str) -> Iterator[Outcome]:
    """Commit."""
    for at, instance in enumerate(world.instances):
        for which in ("write", "compact"):
            op: Op = getattr(instance, which)
            if op.state != COMMIT:
                continue
            store = Store(world)
            name = f"snapshot-{op.version}"
            if op.tmp not in store.files:
                yield Outcome(world._replace(instances=put(world, at, **{which: op._replace(state=BAD)})), own)
            elif constants.put_if_absent and name in store.files:
                yield Outcome(retried(store, world, at, which, op), own)
            else:
                store.files[name] = store.files.pop(op.tmp)
                log, inserting = world.log, world.inserting
                if which == "write":
                    key = op.row[2]
                    columns = [(key, column, op.version, op.row[column]) for column in (3, 4) if op.mask[column - 3]]
                    log = (*log, *columns)
                    if op.row[1] == "-D":
                        inserting = tuple(other for other in inserting if other != key)
                yield Outcome(
                    store.saved(
                        world,
                        instances=put(world, at, **{which: Op()}),
                        log=log,
                        inserting=inserting,
                        max_version=max(world.max_version, op.version),
                        lock=-1,
                    ),
                    own,
                )


def places(constants: Constants) -> list[tuple[int, int]]:
    """All (partition, bucket)."""
    return [(p, b) for p in range(constants.partitions) for b in range(constants.buckets)]


def sequential_snapshot_ids(world: World) -> bool:
    """Snapshot files are numbered without gaps."""
    numbers = sorted(int(name.split("-")[1]) for name, _ in world.objects if name.startswith("snapshot"))
    return numbers == list(range(1, len(numbers) + 1))


def no_dangling_deletion_vectors(constants: Constants, world: World) -> bool:
    """Every vector of every version is for a file of that version."""
    store = Store(world)
    for version in range(1, world.max_version + 1):
        for place in places(constants):
            live = {entry[1] for entry in entries_of(store, version, prefix_of(*place))}
            if not live.issuperset(vectors_of(constants, store, *place, version)):
                return False
    return True


def one_valid_row_per_key(constants: Constants, world: World) -> bool:
    """In levels 1 and above of every version no two rows of a key are unmarked."""
    store = Store(world)
    for version in range(1, world.max_version + 1):
        for place in places(constants):
            vectors, seen = vectors_of(constants, store, *place, version), []
            for _, name, level in entries_of(store, version, prefix_of(*place)):
                rows = store.files[name][1] if level else ()
                seen += [row[2] for i, row in enumerate(rows) if i not in vectors.get(name, ())]
            if constants.dv_enabled and len(set(seen)) < len(seen):
                return False
    return True


def consistent_read(constants: Constants, world: World) -> bool:
    """Every version reads as the history says; the specification swaps arguments, so that its reads get no vectors."""
    store = Store(world)
    for version in range(1, world.max_version + 1):
        for number, key in enumerate(constants.col1):
            place = constants.place(number)
            vectors = vectors_of(constants, store, *place, version) if constants.read_vectors else {}
            row = look_up(store, key, place, version, vectors) or (None, None, None, "", "")
            if any(logged(world, version, key, column) != row[column] for column in (3, 4)):
                return False
    return True


def no_bad_state(world: World) -> bool:
    """No operation is in a bad state."""
    return all(BAD not in (instance.write.state, instance.compact.state) for instance in world.instances)


def literal(constants: Constants) -> Model:
    """The specification as a model of one process that is everybody."""
    instances = (Instance(),) * max(constants.writers, constants.compactors)
    actions = [
        Step("start_write", partial(start_write, constants)),
        Step("start_compaction", partial(start_compaction, constants)),
        Step("write_data_as_writer", write_data_as_writer),
        Step("write_data_as_compactor", partial(write_data_as_compactor, constants)),
        Step("write_metadata", partial(write_metadata, constants)),
        Step("prepare_commit", prepare_commit),
        Step("commit", partial(commit, constants)),
    ]
    return Model(
        name="paimon as in the specification",
        shared=World(instances=instances, ops_on=(0,) * len(constants.col1)),
        processes=(Process("everybody", "runs"),),
        steps=tuple(actions),
        properties=(
            always("sequential_snapshot_ids", sequential_snapshot_ids),
            always("consistent_read", partial(consistent_read, constants)),
            always("no_dangling_deletion_vectors", partial(no_dangling_deletion_vectors, constants)),
            always("one_valid_row_per_key", partial(one_valid_row_per_key, constants)),
            always("no_bad_state", no_bad_state),
        ),
    )
