"""GREATEST and LEAST of two values, which ignore nulls."""

from typing import Any

import numpy as np

from railgun.language.kernels.comparisons import compare_strings
from railgun.language.kernels.layout import CHOOSE_DOUBLE, CHOOSE_LONG, CODE, RESULT, A, B, X
from railgun.language.kernels.vectors import nulls_of, words_of
from reservoir.native.jit import bits_f64, jit, ldi64


@jit
def run_choices(context: Any, row: Any, n: Any) -> None:
    """Evaluate one row of the family of choices over n events."""
    code, sign = ldi64(row + 8 * CODE), ldi64(row + 8 * X)
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    b, bn = words_of(context, row, B, n), nulls_of(context, row, B, n)
    for i in range(n):
        if an[i] != 0:
            is_first = False
        elif bn[i] != 0:
            is_first = True
        else:
            if code == CHOOSE_LONG:
                x, y = np.int64(a[i]), np.int64(b[i])
                order = np.int64(x > y) - np.int64(x < y)
            elif code == CHOOSE_DOUBLE:
                v, w = bits_f64(a[i]), bits_f64(b[i])
                order = np.int64(v > w) - np.int64(v < w)
            else:
                order = np.int64(compare_strings(context, a[i], b[i]))
            is_first = order * sign >= 0
        word, null = (a[i], an[i]) if is_first else (b[i], bn[i])
        d[i] = word
        dn[i] = null
