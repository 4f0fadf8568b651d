"""How much of a file is in memory at a time."""

ROWS_MAX = 65_536
_ROWS_MIN = 4_096
_VALUES_MAX = 1 << 20
TEXT_BLOCK_BYTES = 8 << 20
LINE_BYTES_MAX = 64 << 20


def block_rows(fields: int) -> int:
    """Rows of a block with that many columns."""
    return max(_ROWS_MIN, min(ROWS_MAX, _VALUES_MAX // max(fields, 1)))
