"""Which table of a jobs file a name stands for: names may leave out what is in front, never what tells two apart."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlglot import exp

from lakeproof.errors import InvalidInput


def parts_of(node: exp.Expr) -> list[str]:
    """Catalog, namespace and name of a table, or the qualifiers of a column with its name, in lower case."""
    last = node.this if isinstance(node, exp.Table) else node
    found = [node.text("catalog"), node.text("db")]
    found += [] if isinstance(node, exp.Table) else [node.text("table")]
    return [part.lower() for part in (*found, last.name) if part]


def is_end_of(name: str, longer: str) -> bool:
    """Whether a name is another one, or what is left of it without its first parts.

    >>> is_end_of("orders", "prod.orders"), is_end_of("staging.orders", "prod.orders")
    (True, False)
    """
    return name == longer or longer.endswith(f".{name}")


def table_key(name: str, tables: Collection[str]) -> str | None:
    """The table of the file that this name stands for, by the name that the file creates it with.

    >>> table_key("orders", ["prod.orders"]), table_key("staging.orders", ["prod.orders"])
    ('prod.orders', None)
    """
    if name in tables:
        return name
    found = [key for key in tables if is_end_of(name, key) or is_end_of(key, name)]
    if len(found) > 1:
        raise InvalidInput(f"The name {name} may be of {' or of '.join(found)}", hint="write it in full")
    return found[0] if found else None


def refuse_mixed_names(names: Iterable[str], tables: Collection[str]) -> None:
    """A short and a longer name in one statement may be two tables, unless the file creates the longer one."""
    used: dict[str, str] = {}
    for name in names:
        key = table_key(name, tables)
        other = used.setdefault(key, name) if key is not None else name
        if key is not None and other != name and not (is_end_of(other, key) and is_end_of(name, key)):
            hint = "create it with its full name in the set-up"
            raise InvalidInput(f"{other} and {name} may be one table or two", hint=hint)


def known_tables(tables: Collection[str]) -> str:
    """What the file's tables are called."""
    return f"the tables are {', '.join(tables)}"
