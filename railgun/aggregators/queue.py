"""`first` of a sliding window: all its values, in the order of time; the answer is the value in front."""

from typing import Any

from railgun.aggregators.trees import delete_value, insert_value, key_word
from reservoir.compiled import jit


@jit
def add_queue(
    ctx: int, root: int, time: int, seq: int, v0: Any, v1: Any, type_code: int, text: int, length: int
) -> Any:
    """Add a value, in or out of order; 0 or a status."""
    return insert_value(ctx, root, key_word(time), key_word(seq), v0, v1, type_code, text, length)


@jit
def remove_queue(ctx: int, root: int, time: int, seq: int, v0: Any, v1: Any, type_code: int) -> Any:
    """Remove the value that was added with this time and seq; 0 or a status."""
    return delete_value(ctx, root, key_word(time), key_word(seq), v0, v1, type_code)
