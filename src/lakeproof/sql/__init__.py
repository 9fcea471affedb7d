"""SQL text → statement: the only folder that imports sqlglot, and free of Spark."""

from lakeproof.sql.alter import parse_sort_order
from lakeproof.sql.lexer import Piece, split
from lakeproof.sql.parser import parse_all, parse_statement

__all__ = ["Piece", "parse_all", "parse_sort_order", "parse_statement", "split"]
