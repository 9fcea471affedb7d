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
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
    ValidationError,
)
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from lakeproof.errors import CommitRejected, CommitUnknown, InvalidInput


@contextmanager
def spoken(place: str) -> Iterator[None]:
    """Whatever goes wrong inside is said as one `InvalidInput` at `place`."""
    try:
        yield
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise InvalidInput(_first_line(error), place=place, hint="create it first, or check the name") from error
    except TableAlreadyExistsError as error:
        raise InvalidInput(
            _first_line(error), place=place, hint="choose another name, or say `if not exists`"
        ) from error
    except (OverflowError, struct.error) as error:
        raise InvalidInput(
            f"a value is beyond what the table's metadata can hold: {_first_line(error)}",
            place=place,
            hint="partition by another column or transform: PyIceberg's dates end with the year 9999",
        ) from error
    except PermissionError as error:
        raise InvalidInput(f"no permission: {_first_line(error)}", place=place, hint="check the warehouse") from error
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
    except requests.exceptions.RequestException as error:
        raise InvalidInput("the catalog's server does not answer", place=place, hint="check the address") from error
    except OperationalError as error:
        if "connect" in str(error):
            raise InvalidInput("the catalog's database does not answer", place=place, hint="check the URI") from error
        raise InvalidInput(_first_line(error), place=place) from error
    except OSError as error:
        raise InvalidInput(f"the warehouse cannot be used: {_first_line(error)}", place=place) from error
    except (SQLAlchemyError, RESTError, ValueError, NotImplementedError, pa.ArrowException) as error:
        raise InvalidInput(_first_line(error), place=place) from error


@contextmanager
def swapping(place: str) -> Iterator[None]:
    """A failed swap is `CommitRejected` when certainly nothing was written, else `CommitUnknown`."""
    try:
        yield
    except CommitFailedException as error:
        raise CommitRejected(f"{place}: {_first_line(error)}") from error
    except CommitStateUnknownException as error:
        raise CommitUnknown(f"{place}: {_first_line(error)}") from error
    except SQLAlchemyError as error:
        if database_was_busy(error):
            raise CommitRejected(f"{place}: the catalog's database is busy") from error
        raise CommitUnknown(f"{place}: {_first_line(error)}") from error


def database_was_busy(error: BaseException) -> bool:
    """SQLite refused the lock, so the transaction was rolled back whole and nothing was written."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(cause, "sqlite_errorcode", None)
    return code is not None and (code & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _first_line(error: BaseException) -> str:
    """The first line of what the library said, without the name of the driver's exception before it."""
    line = (str(error) or type(error).__name__).strip().splitlines()[0]
    return re.sub(r"^\([\w.]+\) ", "", line)
