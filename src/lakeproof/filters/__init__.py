"""Which rows or files a predicate may match."""

from lakeproof.filters.expression import (
    ALWAYS,
    NEVER,
    Always,
    And,
    Compare,
    Expression,
    In,
    IsNull,
    Never,
    Opaque,
    Or,
    StartsWith,
    all_of,
    any_of,
    bound,
    columns_of,
    negated,
    worded,
)
from lakeproof.filters.matching import matches, may_match_file, may_match_partition
from lakeproof.filters.transforms import applied

__all__ = [
    "ALWAYS",
    "NEVER",
    "Always",
    "And",
    "Compare",
    "Expression",
    "In",
    "IsNull",
    "Never",
    "Opaque",
    "Or",
    "StartsWith",
    "all_of",
    "any_of",
    "applied",
    "bound",
    "columns_of",
    "matches",
    "may_match_file",
    "may_match_partition",
    "negated",
    "worded",
]
