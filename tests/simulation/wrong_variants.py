"""Wrong variants of the commit and its edges, one line each: the simulation must find every one of them.

Most are what an earlier version did (their numbers are those of the issue that removed them). A patch names a module
or class, an attribute of it, and what stands there instead.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import upkeep
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table
from rows_in_files import removed, write

from lakeproof.commit import snapshots as rules
from lakeproof.commit.attempt import NEXT, SETTLED, UNANSWERED, Attempt, Happened, Phase
from lakeproof.errors import CommitUnknown, LakeproofError
from lakeproof.format import Move, row_set
from lakeproof.iceberg.committing import commit, table_access
from lakeproof.iceberg.committing import whole_file_commits as operations
from lakeproof.iceberg.committing.new_manifests import ManifestMaker
from lakeproof.iceberg.committing.table_access import TableAccess
from lakeproof.iceberg.format_v3.metadata import next_row_id
from lakeproof.iceberg.tables import tables
from lakeproof.iceberg.upkeep import expire

Patch = tuple[str, str, Any]


class Variant(NamedTuple):
    """What is done wrong, and how it is put in."""

    name: str
    theme: str
    says: str
    patches: tuple[Patch, ...]


ATTEMPT, COMMIT = "lakeproof.commit.attempt", "lakeproof.iceberg.committing.commit"


def _next(phase: Phase, happened: Happened, then: Phase) -> Patch:
    return (ATTEMPT, "NEXT", {**NEXT, (phase, happened): then})


def _files_of_the_last_try(calls: Any) -> frozenset[str]:
    return frozenset((*calls.tries[-1].producer.written, *calls.tries[-1].others))


def _cleans_up(attempt: Attempt) -> bool:
    return attempt.ended and attempt.phase is not Phase.UNKNOWN


def _dropped_without_care() -> Callable[..., Any]:
    real = commit.TableCalls.outcome

    def outcome(self: Any, ended: Any) -> Any:
        done = real(self, ended)
        if isinstance(done, commit.Committed) and "write.metadata.previous-versions-max" in done.table.properties:
            for entry in done.table.metadata.metadata_log[:1]:
                done.table.io.delete(entry.metadata_file)
        return done

    return outcome


def _filled_afterwards(self: upkeep.CreateAs, catalog: Any, name: str) -> Any:
    table = tables.create_table(catalog, name, upkeep.SCHEMA, partition_by=upkeep.BY_P)
    try:
        files = write(table, self.rows)
        with removed(table, files):
            if self.fails:
                raise upkeep.QueryFailed
            return operations.append(table, files, self.options())
    except LakeproofError:
        with suppress(LakeproofError):
            tables.drop_table(catalog, name, purge=True)
        raise


def _written_once() -> Callable[..., list[ManifestFile]]:
    """The manifests of new files are written by the first try, and a later one takes them as they are."""
    kept: dict[Any, list[ManifestFile]] = {}
    real = ManifestMaker.added

    def added(self: ManifestMaker, files: Any, content: Any, number: int | None) -> list[ManifestFile]:
        key = tuple(file.file_path for file in files)
        if key not in kept:
            kept[key] = real(self, files, content, number)
        return kept[key]

    return added


def _removed_anyway() -> Callable[..., Table]:
    real = expire._commit

    def swapped(table: Table, found: expire.Expired) -> Table:
        try:
            return real(table, found)
        except CommitUnknown:
            return table

    return swapped


def _never(*_asked: Any) -> None:
    """It is not asked."""


ENDS_AS_IT_IS: Patch = (f"{ATTEMPT}.Attempt", "_while_unanswered", lambda self: self)
CLEANS_UP: Patch = (f"{ATTEMPT}.Attempt", "may_clean_up", property(_cleans_up))
FAILED_LOOK = _next(Phase.LOOK, Happened.FAILED, Phase.ABORTED)
LOST_IS_SETTLED: Patch = (ATTEMPT, "SETTLED", SETTLED | {Happened.LOST_SWAP})
SENT_AGAIN = _next(Phase.SWAP, Happened.NO_ANSWER, Phase.REFRESH)
FORGOTTEN: Patch = (ATTEMPT, "UNANSWERED", UNANSWERED - {(Phase.SWAP, Happened.NO_ANSWER)})
KEPT_OF_LAST: Patch = ("lakeproof.iceberg.committing.table_access.TableAccess", "named", _files_of_the_last_try)
NO_CARE: Patch = (f"{COMMIT}.TableCalls", "outcome", _dropped_without_care)
CUT_LINE: Patch = ("lakeproof.iceberg.committing.window", "written_on", _never)
NO_TAGS_ASKED: Patch = ("lakeproof.iceberg.upkeep.expire.AssertRefs", "validate", _never)
MADE_FIRST: Patch = ("upkeep.CreateAs", "run", _filled_afterwards)
SAME_FOLDER: Patch = ("lakeproof.iceberg.tables.tables", "own_folder", _never)
NOT_REFUSED: Patch = ("lakeproof.iceberg.upkeep.orphans", "_refuse_shared_folder", _never)
OLD_MANIFESTS: Patch = ("lakeproof.iceberg.committing.new_manifests.ManifestMaker", "added", _written_once)
GONE_AT_ONCE: Patch = ("lakeproof.iceberg.upkeep.expire", "_commit", _removed_anyway)


def _replaced_vectors() -> Callable[..., Any]:
    real = rules.with_older_deletes

    def with_older_deletes(new: Any, head: Any, homes: Any) -> Any:
        listed = tuple(new)
        return listed, real(listed, head, homes)[1]

    return with_older_deletes


def _ids_of_the_first_try() -> Callable[..., Any]:
    real = TableAccess.produced

    def produced(self: Any, *about: Any) -> Any:
        table, metadata = self.table, self.table.metadata
        first = self.__dict__.setdefault("first_row_id", next_row_id(metadata))
        stale = metadata.model_copy(update={"next_row_id": first}) if metadata.format_version == 3 else metadata
        self.table = Table(table.name(), stale, table.metadata_location, table.io, table.catalog)
        try:
            return real(self, *about)
        finally:
            self.table = table

    return produced


def _named_without_vectors() -> Callable[..., Any]:
    real = table_access.own_files
    return lambda *about: frozenset(path for path in real(*about) if not path.endswith(".puffin"))


def _followed_by_place() -> Callable[..., Any]:
    def moves(old: Any, new: Any) -> Any:
        size = len(new[0].ids) if new else 0
        return tuple(Move(file.path, row_set(file.positions[:size]), new[0].path, 0) for file in old)

    return moves


ACCESS = "lakeproof.iceberg.committing.table_access"
REPLACED_VECTORS = ("lakeproof.commit.snapshots", "with_older_deletes", _replaced_vectors)
IDS_OF_FIRST = (f"{ACCESS}.TableAccess", "produced", _ids_of_the_first_try)
VECTORS_IN_VAIN = (ACCESS, "own_files", _named_without_vectors)
OF_VERSION_THREE = (
    Variant("V1", "rows", "a vector replaces the one before it and does not take it in", (REPLACED_VECTORS,)),
    Variant("V2", "rows", "a second try gives the row ids of the first", (IDS_OF_FIRST,)),
    Variant("V3", "rows", "the Puffin file of the winning try is cleaned up", (VECTORS_IN_VAIN,)),
)
VARIANTS = (
    Variant("A1", "late", "what is kept is judged by the last try", (KEPT_OF_LAST,)),
    Variant("A2", "late", "a lost swap settles a request without an answer", (LOST_IS_SETTLED,)),
    Variant("A3", "late", "a look that fails ends as not committed", (ENDS_AS_IT_IS, FAILED_LOOK, CLEANS_UP)),
    Variant("A4", "late", "a refresh after a lost swap that fails ends as not committed", (ENDS_AS_IT_IS, CLEANS_UP)),
    Variant("A5", "empty", "a line of parents that expiry has cut looks whole", (CUT_LINE,)),
    Variant("A7", "tags", "an expiry does not ask for new tags", (NO_TAGS_ASKED,)),
    Variant("A8", "late", "an old metadata file must be there to be dropped", (NO_CARE,)),
    Variant("A9", "made", "CTAS makes the table first and purges it if it fails", (MADE_FIRST,)),
    Variant("A10", "names", "a table of the same name gets the same folder", (SAME_FOLDER, NOT_REFUSED)),
    Variant("A15", "rows", "a second try keeps the manifests of the first", (OLD_MANIFESTS,)),
    Variant("no look", "late", "a request without an answer is sent again without a look", (SENT_AGAIN, FORGOTTEN)),
    Variant("early", "late", "an expiry that was not answered removes its files", (GONE_AT_ONCE,)),
)


BY_PLACE = ("lakeproof.iceberg.format_v3.row_moves", "moves_by_row_ids", _followed_by_place)
OF_MOVES = Variant("V4", "moves", "rows of a rewritten file are looked for at the places that they had", (BY_PLACE,))
OF_THREE = (_followed_by_place, _replaced_vectors, _ids_of_the_first_try, _named_without_vectors)
MADE = (_written_once, _removed_anyway, _dropped_without_care, *OF_THREE)  # these wrap what they replace


@contextmanager
def patched(variant: Variant) -> Iterator[None]:
    """Inside, the variant is what runs."""
    before = []
    for owner, name, new in variant.patches:
        there = _found(owner)
        before.append((there, name, there.__dict__[name]))
        setattr(there, name, new() if new in MADE else new)
    try:
        yield
    finally:
        for there, name, old in reversed(before):
            setattr(there, name, old)


def _found(dotted: str) -> Any:
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError:
        module, _, name = dotted.rpartition(".")
        return getattr(importlib.import_module(module), name)
