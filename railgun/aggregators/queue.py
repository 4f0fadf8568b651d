"""`first` of a sliding window: all its values, in the order of time; the answer is the value in front."""

from typing import Any

from railgun.aggregators.entries import is_after, write_entry
from railgun.aggregators.trees import FRONT, insert_value, is_empty
from reservoir.native.jit import jit


@jit
def add_queue(
    ctx: int, root: int, time: int, seq: int, v0: Any, v1: Any, type_code: int, text: int, length: int
) -> Any:
    """Add a value, in or out of order; 0 or a status."""
    in_front = is_empty(root) or not is_after(time, seq, root + FRONT)
    status = insert_value(ctx, root, time, seq, v0, v1, type_code, text, length)
    if status == 0 and in_front:
        write_entry(root + FRONT, time, seq, v0, v1)
    return status
