"""Limits of query text, so that no text can cost much time, memory or stack."""

TEXT_LIMIT_BYTES = 16 * 1024
DEPTH_LIMIT = 64
# The depth of a typed tree, to which conversions and BETWEEN add levels that are not written.
TYPED_DEPTH_LIMIT = 3 * DEPTH_LIMIT
# Nodes of an expression, after the operands that BETWEEN and CASE repeat are written out.
SIZE_LIMIT = 20_000
ITEMS_LIMIT = 100
IN_LIMIT = 1_000
GROUP_BY_LIMIT = 32
LIKE_PATTERN_LIMIT_BYTES = 1_000
NUMBER_LIMIT_DIGITS = 400
NAME_LIMIT = 63
# Bytes of a string, whether a field's value or made by an expression: state cannot hold longer ones.
STRING_BYTES_MAX = 65_535
