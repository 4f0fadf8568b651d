"""Three-valued logic, and the choice between values."""

from typing import Any

import numpy as np

from railgun.language.kernels.layout import AND, CODE, IS_NULL, NOT, OR, RESULT, SELECT, A, B, C
from railgun.language.kernels.vectors import nulls_of, words_of
from reservoir.native.jit import jit, ldi64

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@jit
def run_logic(context: Any, row: Any, n: Any) -> None:
    """Evaluate one row of the logic family over n events."""
    code = ldi64(row + 8 * CODE)
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    b, bn = words_of(context, row, B, n), nulls_of(context, row, B, n)
    if code == AND:
        for i in range(n):
            # A null's word is 0, so a word of 0 without the null byte is false.
            false = ((a[i] == _ZERO) & (an[i] == 0)) | ((b[i] == _ZERO) & (bn[i] == 0))
            d[i] = a[i] & b[i]
            dn[i] = (not false) & ((an[i] | bn[i]) != 0)
    elif code == OR:
        for i in range(n):
            true = a[i] | b[i]
            d[i] = true
            dn[i] = (true == _ZERO) & ((an[i] | bn[i]) != 0)
    elif code == NOT:
        for i in range(n):
            null = an[i] != 0
            d[i] = _ZERO if null else _ONE - a[i]
            dn[i] = null
    elif code == IS_NULL:
        for i in range(n):
            d[i] = np.uint64(an[i])
            dn[i] = 0
    elif code == SELECT:
        c, cn = words_of(context, row, C, n), nulls_of(context, row, C, n)
        for i in range(n):
            chosen = a[i] != _ZERO
            word, null = (b[i], bn[i]) if chosen else (c[i], cn[i])
            d[i] = word
            dn[i] = null
    else:
        for i in range(n):
            kept = an[i] == 0
            word, null = (a[i], an[i]) if kept else (b[i], bn[i])
            d[i] = word
            dn[i] = null
