"""Snapshots are expired: those that no branch, tag or age keeps, and the files that then nothing needs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    RemovePartitionSpecsUpdate,
    RemoveSchemasUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    TableUpdate,
    ValidatableTableRequirement,
)

from lakeproof.commit.upkeep import only_theirs, refs_stand
from lakeproof.errors import CommitConflict, CommitRejected, InvalidInput
from lakeproof.iceberg.committing.pointer import refreshed
from lakeproof.iceberg.committing.retrying import change_metadata, commit_updates
from lakeproof.iceberg.committing.table_access import remove_files
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.reading.manifest_cache import ManifestCache, shared_cache
from lakeproof.iceberg.tables.branches import line_from
from lakeproof.iceberg.tables.properties import whole_number
from lakeproof.iceberg.upkeep.reachable import delete_files_in, manifests_by_path, mappings_of, paths_in

FIVE_DAYS_MS = 5 * 24 * 3_600_000


class Expired(NamedTuple):
    """What an expiry removed (or, as a dry run, would remove), and the table after it.

    `position_deletes` and `equality_deletes` say which of the content files are delete files.
    """

    table: Table
    snapshots: tuple[int, ...] = ()
    refs: tuple[str, ...] = ()
    content_files: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    manifest_lists: tuple[str, ...] = ()
    mappings: tuple[str, ...] = ()
    position_deletes: tuple[str, ...] = ()
    equality_deletes: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()
    schemas: tuple[int, ...] = ()
    specs: tuple[int, ...] = ()


def expire_snapshots(
    table: Table,
    *,
    older_than_ms: int | None = None,
    retain_last: int | None = None,
    snapshot_ids: Iterable[int] = (),
    clean_metadata: bool = False,
    dry_run: bool = False,
    cache: ManifestCache | None = None,
) -> Expired:
    """Expire the snapshots before `older_than_ms` but the last `retain_last` of each branch, or these ids.

    What a branch or tag points to stays. Without arguments the table's `history.expire.*` properties decide.
    `clean_metadata`: schemas and partition specs that no snapshot left uses go too.
    """
    place = f"table {'.'.join(table.name())}"
    if retain_last is not None and retain_last < 1:
        raise InvalidInput("at least one snapshot must be retained", place=place, hint="retain_last => 1")
    chosen = list(snapshot_ids)
    cached = cache or shared_cache()

    def change(newest: Table) -> Expired:
        with _unless_moved(newest):
            found = _to_expire(newest, older_than_ms, retain_last, chosen, cached)
            if clean_metadata:
                found = _with_unused(newest, found)
            if dry_run or not (found.snapshots or found.refs or found.schemas or found.specs):
                return found
            return found._replace(table=_commit(newest, found))

    done = change_metadata(table, change)
    if not dry_run and table.properties.get("gc.enabled", "true").lower() == "true":
        _refuse_lost_refs(done)
        others = (*done.manifest_lists, *done.mappings, *done.statistics)
        remove_files(table, (*done.content_files, *done.manifests, *others))
    return done


def _with_unused(table: Table, found: Expired) -> Expired:
    """Also the schemas and specs that neither the table nor a snapshot that stays needs."""
    metadata = table.metadata
    kept = [each for each in metadata.snapshots if each.snapshot_id not in found.snapshots]
    schemas = {metadata.current_schema_id, *(each.schema_id for each in kept)}
    specs = {metadata.default_spec_id, *(m.partition_spec_id for m in manifests_by_path(table, kept).values())}
    return found._replace(
        schemas=tuple(each.schema_id for each in metadata.schemas if each.schema_id not in schemas),
        specs=tuple(each.spec_id for each in metadata.partition_specs if each.spec_id not in specs),
    )


@contextmanager
def _unless_moved(table: Table) -> Iterator[None]:
    """A file or a snapshot that is missing because somebody else has expired it meanwhile is a lost race."""
    try:
        yield
    except (FileNotFoundError, ValueError, InvalidInput):
        if refreshed(table).metadata_location == table.metadata_location:
            raise
        raise CommitRejected(f"table {'.'.join(table.name())} was changed while it was read") from None


def _to_expire(
    table: Table, older_than_ms: int | None, retain_last: int | None, chosen: list[int], cache: ManifestCache
) -> Expired:
    now = time.time_ns() // 1_000_000
    aged_refs = tuple(sorted(name for name, ref in table.metadata.refs.items() if _is_aged(table, name, ref, now)))
    kept_refs = {name: ref for name, ref in table.metadata.refs.items() if name not in aged_refs}
    if chosen:
        kept = _kept_but_chosen(table, kept_refs, chosen)
    else:
        kept = _kept_by_age(table, kept_refs, older_than_ms, retain_last, now)
    retained = [each for each in table.metadata.snapshots if each.snapshot_id in kept]
    expired = [each for each in table.metadata.snapshots if each.snapshot_id not in kept]
    return _files(table, expired, retained, cache)._replace(refs=aged_refs)


def _kept_by_age(
    table: Table, refs: dict[str, SnapshotRef], older_than_ms: int | None, retain_last: int | None, now: int
) -> set[int]:
    """A branch keeps its newest snapshots and those young enough; a tag keeps its own; strays live by their age."""
    properties = table.properties
    age = whole_number(properties, "history.expire.max-snapshot-age-ms", FIVE_DAYS_MS)
    cut = now - age if older_than_ms is None else older_than_ms
    least = retain_last or whole_number(properties, "history.expire.min-snapshots-to-keep", 1)
    kept: set[int] = set()
    known: set[int] = set()
    for ref in refs.values():
        line = list(line_from(table.snapshot_by_id(ref.snapshot_id), table.metadata))
        known |= {each.snapshot_id for each in line}
        kept.add(ref.snapshot_id)
        if ref.snapshot_ref_type == SnapshotRefType.BRANCH:
            at_least = ref.min_snapshots_to_keep or least
            cut_here = cut if ref.max_snapshot_age_ms is None else now - ref.max_snapshot_age_ms
            kept |= {each.snapshot_id for n, each in enumerate(line) if n < at_least or each.timestamp_ms >= cut_here}
    strays = (each for each in table.metadata.snapshots if each.snapshot_id not in known)
    return kept | {each.snapshot_id for each in strays if each.timestamp_ms >= cut}


def _kept_but_chosen(table: Table, refs: dict[str, SnapshotRef], chosen: list[int]) -> set[int]:
    place = f"table {'.'.join(table.name())}"
    for snapshot_id in chosen:
        if table.snapshot_by_id(snapshot_id) is None:
            raise InvalidInput(f"there is no snapshot {snapshot_id}", place=place)
        holders = [name for name, ref in refs.items() if ref.snapshot_id == snapshot_id]
        if holders:
            raise InvalidInput(
                f"snapshot {snapshot_id} is the head of `{holders[0]}`",
                place=place,
                hint="drop the branch or tag first",
            )
    return {each.snapshot_id for each in table.metadata.snapshots} - set(chosen)


def _is_aged(table: Table, name: str, ref: SnapshotRef, now: int) -> bool:
    snapshot = table.snapshot_by_id(ref.snapshot_id)
    limit = ref.max_ref_age_ms
    return name != MAIN_BRANCH and limit is not None and snapshot is not None and now - snapshot.timestamp_ms > limit


def _files(table: Table, expired: list[Snapshot], retained: list[Snapshot], cache: ManifestCache) -> Expired:
    """What only expired snapshots need: a file stays while any retained snapshot reads it."""
    kept = manifests_by_path(table, retained)
    gone = {path: m for path, m in manifests_by_path(table, expired).items() if path not in kept}
    candidates = paths_in(table, gone.values(), cache, live_only=False)
    needed = paths_in(table, kept.values(), cache, live_only=True) if candidates else frozenset()
    files = only_theirs(candidates, needed)
    positions, values = delete_files_in(table, gone.values(), cache)
    ids = {each.snapshot_id for each in expired}
    described = [*table.metadata.statistics, *table.metadata.partition_statistics]
    theirs, others = (
        frozenset(each.statistics_path for each in described if (each.snapshot_id in ids) is old)
        for old in (True, False)
    )
    return Expired(
        table=table,
        snapshots=tuple(each.snapshot_id for each in expired),
        content_files=files,
        position_deletes=tuple(path for path in files if path in positions),
        equality_deletes=tuple(path for path in files if path in values),
        statistics=only_theirs(theirs, others),
        manifests=tuple(sorted(gone)),
        manifest_lists=tuple(sorted(each.manifest_list for each in expired)),
        mappings=only_theirs(mappings_of(expired), mappings_of(retained)),
    )


class AssertRefs(ValidatableTableRequirement):
    """No branch or tag was made, moved or dropped. PyIceberg asks it of the metadata that it is about to replace."""

    type: str = "lakeproof-assert-refs"
    refs: dict[str, int]

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]
        """Raise where the refs are others."""
        now = {} if base_metadata is None else _heads(base_metadata)
        if not refs_stand(self.refs, now):
            raise CommitFailedException("a branch or tag was changed meanwhile")


def _heads(metadata: TableMetadata) -> dict[str, int]:
    return {name: ref.snapshot_id for name, ref in metadata.refs.items()}


def _commit(table: Table, found: Expired) -> Table:
    updates: list[TableUpdate] = [RemoveSnapshotRefUpdate.model_validate({"ref-name": name}) for name in found.refs]
    if found.snapshots:
        updates.append(RemoveSnapshotsUpdate.model_validate({"snapshot-ids": list(found.snapshots)}))
    if found.schemas:
        updates.append(RemoveSchemasUpdate.model_validate({"schema-ids": list(found.schemas)}))
    if found.specs:
        updates.append(RemovePartitionSpecsUpdate.model_validate({"spec-ids": list(found.specs)}))
    # Every ref must stand where it stood: a writer may have branched off a snapshot that we are about to remove.
    heads = _heads(table.metadata)
    stand = [AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": at}) for name, at in heads.items()]
    if isinstance(table.catalog, MetastoreCatalog):
        return commit_updates(table, [AssertRefs(refs=heads)], updates)
    return commit_updates(table, stand, updates)


def _refuse_lost_refs(done: Expired) -> None:
    """A server cannot be asked whether a tag is new. It then drops the tag with its snapshot: its files must stay."""
    table = done.table
    if isinstance(table.catalog, MetastoreCatalog) or not (done.snapshots and table.metadata.metadata_log):
        return
    base = table.metadata.metadata_log[-1].metadata_file
    with translate_errors(f"table {'.'.join(table.name())}"):
        refs = FromInputFile.table_metadata(table.io.new_input(base)).refs
    lost = sorted(name for name, ref in refs.items() if ref.snapshot_id in done.snapshots and name not in done.refs)
    if lost:
        raise CommitConflict(
            f"expire_snapshots on {'.'.join(table.name())}: `{lost[0]}` was made meanwhile at an expired snapshot, and "
            f"the catalog dropped it\n  next  no file was removed; the metadata file {base} still names it"
        )
