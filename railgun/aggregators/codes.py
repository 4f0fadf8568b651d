"""Codes in the interpreter's programs: kinds of cells, kinds of results, types, outcomes.

The catalogue of aggregators puts them into programs, and the kernels in `dispatch.py` and `results.py` act on them.
"""

# Kinds of cells, which are also the op codes of their updates (apply_add, apply_remove, apply_reset).
COUNT = 0
SUM_DOUBLE = 1
SUM_LONG = 2
SQUARES_DOUBLE = 3
SQUARES_LONG = 4
LATEST = 5
EARLIEST = 6
LEAST = 7
GREATEST = 8
DEQUE_MIN = 9
DEQUE_MAX = 10
QUEUE = 11
MULTISET = 12
VALUE_SET = 13

# Kinds of results: the op codes of apply_result.
RESULT_COUNT = 0
RESULT_SUM_DOUBLE = 1
RESULT_AVG_DOUBLE = 2
RESULT_SUM_LONG = 3
RESULT_AVG_LONG = 4
RESULT_AVG_DECIMAL = 5
RESULT_VAR_SAMP_DOUBLE = 6
RESULT_VAR_POP_DOUBLE = 7
RESULT_STDDEV_SAMP_DOUBLE = 8
RESULT_STDDEV_POP_DOUBLE = 9
RESULT_VAR_SAMP_LONG = 10
RESULT_VAR_POP_LONG = 11
RESULT_STDDEV_SAMP_LONG = 12
RESULT_STDDEV_POP_LONG = 13
RESULT_LAST = 14
RESULT_PREV = 15
RESULT_EARLIEST = 16
RESULT_EXTREME = 17
RESULT_FRONT = 18
RESULT_DISTINCT = 19

# How the words of a value compare: as int64 (also decimals, booleans, timestamps), as doubles, as strings.
TYPE_INT = 0
TYPE_DOUBLE = 1
TYPE_STRING = 2

# Outcomes of apply_result. Statuses of the page pool are negative.
VALUE = 0
NULL = 1
