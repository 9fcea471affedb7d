"""PyIceberg's, SQLAlchemy's and the file system's exceptions become the families of `lakeproof.errors`."""

from __future__ import annotations

import re
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import requests
from pydantic import ValidationError as PydanticError
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TooManyRequestsError,
    UnauthorizedError,
    ValidationError,
)
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from lakeproof.errors import (
    FULL_DISK,
    MAKE_ROOM,
    CommitRejected,
    CommitUnknown,
    InvalidInput,
    LakeproofError,
    Unavailable,
    disk_is_full,
    hide_secrets,
)

LONGEST = 400
_NOT_NOW = (ServerError, ServiceUnavailableError, TooManyRequestsError)
_TURNED_DOWN = (ForbiddenError, UnauthorizedError, NoSuchTableError, NoSuchNamespaceError)
_OUTRUN = re.compile(r"first.row.id .*(behind|smaller than)|older than last sequence number", re.IGNORECASE)
"""Somebody committed to another branch: its number or its row ids are taken, and no requirement can say so before."""
_TOO_LONG = "precision of value is greater than precision of type"
_METADATA = "the table's metadata file cannot be read"
_RESTORE_METADATA = (
    "restore the metadata file from a copy, or register an older one; `lakeproof audit` says what is lost"
)
_STUMBLED = (LookupError, TypeError, AttributeError, ArithmeticError, AssertionError, EOFError, MemoryError)
_SQLITE_OUTAGES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)


@contextmanager
def _without_secrets() -> Iterator[None]:
    """An error of ours leaves without its cause if a traceback would print a password or a token with that."""
    try:
        yield
    except LakeproofError as error:
        told, cause = [], error.__cause__
        while cause is not None and cause not in told:
            told.append(cause)
            cause = cause.__cause__ or cause.__context__
        if any(hide_secrets(str(each)) != str(each) for each in told):
            raise error from None
        raise


@contextmanager
def translate_errors(place: str) -> Iterator[None]:
    """Whatever goes wrong inside is said at `place`: as `Unavailable` if it may go right later, else `InvalidInput`."""
    with _without_secrets(), _spoken(place):
        yield


@contextmanager
def _spoken(place: str) -> Iterator[None]:
    try:
        yield
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise InvalidInput(_first_line(error), place=place, hint="create it first, or check the name") from error
    except TableAlreadyExistsError as error:
        raise InvalidInput(
            _first_line(error), place=place, hint="choose another name, or say `if not exists`"
        ) from error
    except (OverflowError, struct.error) as error:
        raise _beyond(error, place) from error
    except PermissionError as error:
        raise InvalidInput(f"no permission: {_first_line(error)}", place=place, hint="check the warehouse") from error
    except FileNotFoundError as error:
        raise InvalidInput(
            f"a file of the table is missing: {_first_line(error)}",
            place=place,
            hint="run it again if its snapshot was expired meanwhile; else restore the file, or drop the table",
        ) from error
    except (PydanticError, ValidationError) as error:
        if "validation error" not in str(error):
            raise InvalidInput(_first_line(error), place=place) from error
        raise InvalidInput(_METADATA, place=place, hint=_RESTORE_METADATA) from error
    except (requests.exceptions.RequestException, *_NOT_NOW) as error:
        raise Unavailable("the catalog's server does not answer", place=place, hint="try later") from error
    except OperationalError as error:
        if not _is_outage(error):
            raise InvalidInput(_first_line(error), place=place) from error
        if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
            raise Unavailable(FULL_DISK, place=place, hint=MAKE_ROOM) from error
        busy = "is busy" if database_was_busy(error) else "does not answer"
        raise Unavailable(f"the catalog's database {busy}", place=place, hint="try later") from error
    except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
        raise InvalidInput(f"the warehouse cannot be used: {_first_line(error)}", place=place) from error
    except OSError as error:
        if disk_is_full(error):
            raise Unavailable(FULL_DISK, place=place, hint=MAKE_ROOM) from error
        hint = "try later, or check the warehouse"
        raise Unavailable(f"the storage does not answer: {_first_line(error)}", place=place, hint=hint) from error
    except (SQLAlchemyError, RESTError, ValueError, NotImplementedError, pa.ArrowException) as error:
        if _TOO_LONG in str(error):
            raise _beyond(error, place) from error
        raise InvalidInput(_first_line(error), place=place) from error
    except _STUMBLED as error:
        raise InvalidInput(
            f"the table's metadata cannot be understood: {type(error).__name__}, {_first_line(error)}",
            place=place,
            hint="`lakeproof audit` says what is damaged; where it finds nothing, please report this",
        ) from error


class DamagedFile(InvalidInput):
    """A file of a table does not hold what it should; it is named."""


@contextmanager
def reading_file(path: str) -> Iterator[None]:
    """Whatever a library stumbles over in the content of a file is said of the file; a storage's own errors stay.

    What the bytes of a damaged file make of a decoder nobody can list, so every exception that comes of them counts.
    """
    try:
        yield
    except LakeproofError:
        raise
    except BaseException as error:
        of_storage = isinstance(error, OSError) and (error.errno is not None or isinstance(error, FileNotFoundError))
        if of_storage or not (isinstance(error, Exception) or type(error).__name__ == "PanicException"):  # of Polars
            raise
        if isinstance(error, PydanticError | ValidationError) and "validation error" in str(error):
            raise DamagedFile(_METADATA, place=f"file {path}", hint=_RESTORE_METADATA) from error
        raise DamagedFile(
            f"the file is damaged: {_first_line(error)}",
            place=f"file {path}",
            hint="restore it from a copy; `lakeproof audit` says which snapshots need it",
        ) from error


def _beyond(error: Exception, place: str) -> InvalidInput:
    """A partition's value, or a bound of a file, that cannot be written down; which limit it is, the error tells."""
    if isinstance(error, struct.error):
        limit = "a truncated number falls below the least of its type"
    elif _TOO_LONG in str(error) or "int too big" in str(error):
        limit = "a truncated decimal needs one digit more than its type has"
    else:
        limit = "PyIceberg's dates reach from the year 1 to the year 9999"
    return InvalidInput(
        f"a value is beyond what the table's metadata can hold: {_first_line(error)}",
        place=place,
        hint=f"partition by another column or transform: {limit}",
    )


def _is_outage(error: OperationalError) -> bool:
    """Whether the database may answer later: SQLite says so by a code, others say by name what is wrong with a call."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return (code & 0xFF) in _SQLITE_OUTAGES
    return not isinstance(error.orig, sqlite3.Error) and not re.search(r"authentication|does not exist", str(error))


@contextmanager
def swapping(place: str) -> Iterator[None]:
    """A failed swap is `CommitRejected` or `InvalidInput` when certainly nothing was written, else `CommitUnknown`."""
    with _without_secrets(), _swapping(place):
        yield


@contextmanager
def _swapping(place: str) -> Iterator[None]:
    try:
        yield
    except CommitFailedException as error:
        raise CommitRejected(f"{place}: {_first_line(error)}") from error
    except (BadRequestError, ValueError) as error:
        if _OUTRUN.search(str(error)):
            raise CommitRejected(f"{place}: {_first_line(error)}") from error
        if not isinstance(error, BadRequestError):
            raise
        raise InvalidInput(_first_line(error), place=place) from error
    except _TURNED_DOWN as error:
        raise InvalidInput(_first_line(error), place=place) from error
    except NotImplementedError as error:  # a table that was opened from its metadata file belongs to no catalog
        hint = "open it by its name in a catalog"
        raise InvalidInput("the table was opened for reading alone", place=place, hint=hint) from error
    except (CommitStateUnknownException, requests.exceptions.RequestException, *_NOT_NOW) as error:
        raise CommitUnknown(f"{place}: {_first_line(error)}") from error
    except SQLAlchemyError as error:
        if database_was_busy(error):
            raise CommitRejected(f"{place}: the catalog's database is busy") from error
        if _only_read(error):
            raise Unavailable("the catalog's database does not answer", place=place, hint="try later") from error
        raise CommitUnknown(f"{place}: {_first_line(error)}") from error


def _only_read(error: SQLAlchemyError) -> bool:
    """Whether a query failed: PyIceberg reads the table once more before it sends anything."""
    return isinstance(error, DBAPIError) and (error.statement or "").lstrip()[:6].upper() == "SELECT"


def database_was_busy(error: BaseException) -> bool:
    """SQLite refused the lock, so the transaction was rolled back whole and nothing was written."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(cause, "sqlite_errorcode", None)
    return code is not None and (code & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _first_line(error: BaseException) -> str:
    """The first line of what the library said, without the name of the driver's exception before it."""
    line = ((str(error).strip() or type(error).__name__).splitlines() or [""])[0]
    return re.sub(r"^\([\w.]+\) ", "", line)[:LONGEST]
