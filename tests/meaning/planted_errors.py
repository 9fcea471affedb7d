"""Errors that the oracle must find, one line each: its name, the module, what stands there and what would be wrong.

`mix` and `seed` name the random episode that shows the error; a search found them.
"""

from __future__ import annotations

from planting import Planted

_TREE = "spark.catalyst"
_FILTER = "iceberg.predicates"
_BOUNDS = "iceberg.pruning"
_PARTITIONS = "iceberg.partition_pruning"
_COUNTS = "iceberg.answers"
_ASKED = "spark.row_level.asked"
_METADATA = "spark.metadata_answers"
_MATCHING = "filters.matching"
_ANALYSIS = "spark.analysis"
_MERGE = "spark.row_level.merge"

PLANTED = (
    # the translation of Spark's conditions
    Planted("a negation is dropped", _TREE, "self.read(node.children[0], not truth)", "self.read(node.children[0], truth)"),
    Planted("OR is read as AND", _TREE, '(node.kind == "And") == truth', '(node.kind != "") == truth'),
    Planted("a negation goes past AND", _TREE, '(node.kind == "And") == truth', 'node.kind == "And"'),
    Planted("what has no filter counts as said", _TREE, "return Translation(ALWAYS, False)", "return Translation(ALWAYS, True)"),
    Planted("one exact part makes all exact", _TREE, "join(part.filter for part in parts), all(", "join(part.filter for part in parts), any("),
    Planted("5 < x is read as x < 5", _TREE, "_MIRRORED[sign], right, left", "sign, right, left"),
    Planted("<=> is read as =", _TREE, "null_safe(column, value, truth) if", "comparison(column, sign, value, truth) if"),
    Planted("NOT IS NULL is IS NULL", _TREE, '(kind == "IsNull") != truth', '(kind == "IsNotNull")'),
    Planted("NULL in a list is a value", _TREE, "NEVER if len(known) < len(values) else In(column", "In(column"),
    Planted("NOT startswith is startswith", _TREE, "prefix, negative=not truth", "prefix, negative=False"),
    Planted("the qualifier of a field is lost", _TREE, """return f"{_scan_name(parent)}.{inside['f""", """return f"{inside['f"""),
    Planted("NOT b is b", _TREE, 'Compare(self.column(node), "=", truth)', 'Compare(self.column(node), "=", True)'),
    Planted("a float is parsed as a double", _TREE, "float(np.float32(text))", "float(text)"),
    Planted("an instant loses its microseconds", _TREE, "lambda text: (_EPOCH + dt.timedelta(microseconds=int(text))", "lambda text: (_EPOCH + dt.timedelta(milliseconds=int(text) // 1000)"),
    Planted("a local time is taken for another hour", _TREE, '"timestamp_ntz": lambda text: _EPOCH', '"timestamp_ntz": lambda text: _EPOCH + dt.timedelta(hours=1)'),
    # filters as predicates for planning
    Planted("a decimal between two values is rounded up", _FILTER, "below = _of_scale(value, kind, ROUND_FLOOR)", 'below = _of_scale(value, kind, "ROUND_CEILING")'),
    Planted("NaN is below what x > 5 asks for", _FILTER, "return Or(made, _leaf(IsNaN, column))", "return made"),
    Planted("x IN keeps one value of its list", _FILTER, "return _leaf(In, column, known) if known", "return _leaf(In, column, known[:1]) if known"),
    # bounds
    Planted("<= is pruned like <", _BOUNDS, '~self._beyond("lo", ">", term, literal.value)', '~self._beyond("lo", ">=", term, literal.value)'),
    Planted(">= is pruned like >", _BOUNDS, 'self._above(term, "<", literal.value)', 'self._above(term, "<=", literal.value)'),
    Planted("nulls are where none are counted", _BOUNDS, "np.asarray(nulls.values != 0)\n\n    def visit_not_null", "np.asarray(nulls.values == 0)\n\n    def visit_not_null"),
    Planted("a file of nulls alone is kept for IS NOT NULL", _BOUNDS, '-> Mask:\n        return ~self._only("nc", field_id(term))', '-> Mask:\n        return self._only("nc", field_id(term))'),
    Planted("one equal bound is enough for <>", _BOUNDS, "return same[0] & same[1]", "return same[0] | same[1]"),
    Planted("an upper bound that has the prefix spares the file", _BOUNDS, '(("lo", ">"), ("hi", "<"))', '(("lo", ">"), ("hi", "<="))'),
    Planted("one bound with the prefix is enough for NOT LIKE", _BOUNDS, '"=", prefix) & _compared(high', '"=", prefix) | _compared(high'),
    Planted("a decimal is compared without its scale", _BOUNDS, "int(value.scaleb(field.field_type.scale))", "int(value)"),
    Planted("a list begins after the lower bound", _BOUNDS, "np.searchsorted(wanted, low.values)", 'np.searchsorted(wanted, low.values, "right")'),
    # partition values
    Planted("a partition is null where it is not", _PARTITIONS, "return ~self.visit_not_null(term)", "return self.visit_not_null(term)"),
    Planted("a partition value is less than itself", _PARTITIONS, "bool(value <= literal.value)", "bool(value < literal.value)"),
    # answers from metadata
    Planted("deleted rows are counted", _COUNTS, "return None if deleted is None else found.rows_kept - deleted", "return found.rows_kept"),
    Planted("a file that matches in part is counted whole", _COUNTS, "snapshot_id=snapshot_id).partial:", "snapshot_id=snapshot_id).partial and False:"),
    Planted("the least value may be a deleted one", _COUNTS, "or found.delete_files.num_rows:", ":"),
    Planted("a bound is the greatest value though NaN is there", _COUNTS, "np.any(nans.values[wanted] != 0)", "False"),
    Planted("a weaker filter is taken for exact", _ASKED, "return _shortened(said.filter) if said.exact else None", "return _shortened(said.filter)"),
    Planted("IS NULL is implied by a comparison", _ASKED, "isinstance(part, IsNull) and part.negative and", "isinstance(part, IsNull) and"),
    Planted("min forgets the WHERE", _METADATA, "if where is None or (where != ALWAYS and any(one.column is not None for one in wanted)):", "if where is None:"),
    Planted("count forgets its FILTER", _METADATA, ' or len(expression.children) != 1:', ":"),
    # whole files
    Planted("a null matches whatever others match", _MATCHING, "return not nulls and not may_match_file(negated", "return not may_match_file(negated", "commands"),
    Planted("NaN is no larger than the upper bound", _MATCHING, 'known.has_nans and op != "="', "False", "commands"),
    # values, conditions and clauses
    Planted("any cast is good enough for a column", _ANALYSIS, "            value = value.child()\n        return", "            pass\n        return", "commands"),
    Planted("UPDATE forgets its WHERE", _ANALYSIS, "return Meaning(self._optional(command.condition()), values)", "return Meaning(None, values)", "commands"),
    Planted("a clause forgets its condition", _ANALYSIS, "self._optional(action.condition()), self._written", "None, self._written", "commands"),
    Planted("NOT NULL is not asked", _ANALYSIS, ".withNullability(field.nullable)", ".withNullability(True)", "commands"),
    Planted("the last clause wins", _MERGE, "    for number, clause in enumerate(clauses):\n        applies", "    for number, clause in reversed(list(enumerate(clauses))):\n        applies", "commands"),
    Planted("two source rows may match one row", _MERGE, "if np.any(matched[1:] == matched[:-1]):", "if False:", "commands"),
    Planted("rows without a source row are not looked for", _MERGE, "if NOT_MATCHED_BY_SOURCE not in kinds:", "if True:", "commands"),
)  # fmt: skip
