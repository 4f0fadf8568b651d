"""The evaluator: runs a program's rows one after the other, each over all events of the batch."""

from typing import Any

from railgun.language.kernels.arithmetic import run_decimals, run_doubles
from railgun.language.kernels.calendar import run_calendar
from railgun.language.kernels.choices import run_choices
from railgun.language.kernels.comparisons import run_comparisons, run_logic
from railgun.language.kernels.layout import (
    CHOICES_END,
    CODE,
    COMPARISONS_END,
    DECIMALS_END,
    DONE,
    DOUBLES_END,
    LOGIC_END,
    LONGS_END,
    PROGRAM,
    PROGRAM_LENGTH,
    ROUNDING_END,
    ROW_BYTES,
    ROWS,
    SCRATCH_USED,
    STRINGS_END,
    TEXTS_END,
)
from railgun.language.kernels.longs import run_longs
from railgun.language.kernels.rounding import run_rounding
from railgun.language.kernels.strings import run_strings
from railgun.language.kernels.texts import run_texts
from reservoir.native.jit import jit, ldi64, sti64


@jit
def evaluate(context: Any) -> Any:
    """Evaluate the program that the context at this address holds, over its batch.

    Returns DONE or SCRATCH_TOO_SMALL. In the latter case SCRATCH_WANTED says how many bytes heap 2 needs at least;
    the caller provides them and evaluates the whole program again.
    """
    n = ldi64(context + 8 * ROWS)
    row = ldi64(context + 8 * PROGRAM)
    sti64(context + 8 * SCRATCH_USED, 0)
    for _ in range(ldi64(context + 8 * PROGRAM_LENGTH)):
        code = ldi64(row + 8 * CODE)
        if code < LONGS_END:
            run_longs(context, row, n)
        elif code < DOUBLES_END:
            run_doubles(context, row, n)
        elif code < DECIMALS_END:
            run_decimals(context, row, n)
        elif code < COMPARISONS_END:
            run_comparisons(context, row, n)
        elif code < LOGIC_END:
            run_logic(context, row, n)
        elif code < STRINGS_END:
            status = run_strings(context, row, n)
            if status != DONE:
                return status
        elif code < ROUNDING_END:
            run_rounding(context, row, n)
        elif code < CHOICES_END:
            run_choices(context, row, n)
        elif code < TEXTS_END:
            status = run_texts(context, row, n)
            if status != DONE:
                return status
        else:
            run_calendar(context, row, n)
        row += ROW_BYTES
    return DONE
