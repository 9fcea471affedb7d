"""PyIceberg's, SQLAlchemy's and the file system's exceptions become the families of `lakeproof.errors`."""

from __future__ import annotations

import errno
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import requests
from pydantic import ValidationError as PydanticError
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TooManyRequestsError,
    ValidationError,
)
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from lakeproof.errors import CommitRejected, CommitUnknown, InvalidInput, Unavailable

_OVERLOADED = (ServerError, ServiceUnavailableError, TooManyRequestsError)
_WRONG_PLACE = (NotADirectoryError, IsADirectoryError, FileExistsError)
_WRONG_CODES = {errno.EROFS, errno.ENAMETOOLONG, errno.EINVAL, errno.ENOTEMPTY}
_WRONG_DATABASE = re.compile(
    "no such table|unable to open|readonly|not a database|authentication|does not exist|syntax error"
)


@contextmanager
def spoken(place: str) -> Iterator[None]:
    """Whatever goes wrong inside is one sentence: fix the call (`InvalidInput`), or try later (`Unavailable`)."""
    try:
        yield
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise InvalidInput(_first_line(error), place=place, hint="create it first, or check the name") from error
    except TableAlreadyExistsError as error:
        raise InvalidInput(
            _first_line(error), place=place, hint="choose another name, or say `if not exists`"
        ) from error
    except FileNotFoundError as error:
        raise InvalidInput(
            f"a file of the table is missing: {_first_line(error)}",
            place=place,
            hint="restore the file, or drop the table",
        ) from error
    except (PydanticError, ValidationError) as error:
        if "validation error" not in str(error):
            raise InvalidInput(_first_line(error), place=place) from error
        raise InvalidInput(
            "the table's metadata file cannot be read",
            place=place,
            hint="restore the metadata file from a copy, or register an older one",
        ) from error
    except (requests.exceptions.RequestException, *_OVERLOADED) as error:
        raise _unavailable("the catalog's server does not answer", place, "check the address") from error
    except OperationalError as error:
        if _WRONG_DATABASE.search(str(error)) and not database_was_busy(error):
            raise InvalidInput(_first_line(error), place=place, hint="check the URI") from error
        told = "is busy" if database_was_busy(error) else "does not answer"
        raise _unavailable(f"the catalog's database {told}: {_first_line(error)}", place, "check the URI") from error
    except OSError as error:
        raise _of_storage(error, place) from error
    except (SQLAlchemyError, RESTError, ValueError, NotImplementedError, pa.ArrowException) as error:
        raise InvalidInput(_first_line(error), place=place) from error


def _of_storage(error: OSError, place: str) -> InvalidInput | Unavailable:
    """A path that can never be written is a mistake of the call; what a disk or a server says today is not."""
    if isinstance(error, PermissionError) or "ACCESS_DENIED" in str(error):
        return InvalidInput(f"no permission: {_first_line(error)}", place=place, hint="check the warehouse")
    if isinstance(error, _WRONG_PLACE) or error.errno in _WRONG_CODES:
        return InvalidInput(f"the warehouse cannot be used: {_first_line(error)}", place=place)
    return _unavailable(f"the storage does not answer: {_first_line(error)}", place, "check the warehouse")


def _unavailable(message: str, place: str, check: str) -> Unavailable:
    return Unavailable(f"{message}\n  at    {place}\n  hint  try later, or {check}")


@contextmanager
def swapping(place: str) -> Iterator[None]:
    """A failed swap is `CommitRejected` when certainly nothing was written, else `CommitUnknown`."""
    try:
        yield
    except CommitFailedException as error:
        raise CommitRejected(f"{place}: {_first_line(error)}") from error
    except (CommitStateUnknownException, requests.exceptions.RequestException, *_OVERLOADED) as error:
        raise CommitUnknown(f"{place}: {_first_line(error)}") from error
    except SQLAlchemyError as error:
        if database_was_busy(error):
            raise CommitRejected(f"{place}: the catalog's database is busy") from error
        if _only_read(error):
            raise _unavailable("the catalog's database does not answer", place, "check the URI") from error
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
    line = (str(error) or type(error).__name__).strip().splitlines()[0]
    return re.sub(r"^\([\w.]+\) ", "", line)
