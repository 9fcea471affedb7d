"""SQL text → statement: the only folder that imports sqlglot, and free of Spark."""

from lakeproof.sql.lexer import Piece, split
from lakeproof.sql.parser import parse, parse_all

__all__ = ["Piece", "parse", "parse_all", "split"]
