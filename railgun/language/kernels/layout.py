"""The numbers on which the compiler of expressions (lowering.py) and the compiled evaluator (evaluate.py) agree.

A program is a table of int64 rows. A row has an operation code, the result, the operands a, b and c, and two
parameters X and Y, whose meaning depends on the operation. The result and the operands are numbers of *vectors*. A
vector holds the values of one expression for all events of a batch: a column of 64-bit words and a column of null
bytes. The context holds the addresses of both. The word of a null is 0.
"""

# The words of one row of the program. The eighth is unused.
CODE, RESULT, A, B, C, X, Y = range(7)
ROW_WORDS = 8
ROW_BYTES = 8 * ROW_WORDS

# The words of the context (int64): the program, the batch and the heaps.
(
    ROWS,  # events in the batch
    PROGRAM,  # address of the table
    PROGRAM_LENGTH,  # rows of the table
    POOL,  # address of the pool: int64, the sorted items of IN, the patterns of LIKE, the offsets of time zones
    HEAP_BATCH,  # address of heap 0: the batch's strings
    HEAP_CONSTANT,  # address of heap 1: the program's own strings
    HEAP_SCRATCH,  # address of heap 2: the strings that operations make
    SCRATCH_CAPACITY,  # bytes of heap 2
    SCRATCH_USED,  # bytes of heap 2 taken in this batch (written by the evaluator)
    SCRATCH_WANTED,  # bytes of heap 2 without which the batch cannot be evaluated (written by the evaluator)
    CASE_TABLES,  # addresses of the case mapping's tables, as `evaluator.CaseTables` lays them out
) = range(11)
# From here on, two words for each vector: the address of its words, and the address of its null bytes.
VECTORS = 12

# A string's word: heap << 62 | offset << 24 | length, the last two in bytes.
HEAP_SHIFT = 62
OFFSET_SHIFT = 24
OFFSET_BITS = 38
LENGTH_BITS = 24
BATCH, CONSTANT, SCRATCH = range(3)

# What the evaluator returns.
DONE, SCRATCH_TOO_SMALL = range(2)

# Which outcomes of a comparison are true: bits of X.
IS_LESS, IS_EQUAL, IS_GREATER = 1, 2, 4

# Operation codes, family by family. Timestamps and the integers of decimals are longs here.
(
    LONG_ADD,
    LONG_SUBTRACT,
    LONG_MULTIPLY,
    LONG_REMAINDER,
    LONG_NEGATE,
    LONG_ABS,
    LONGS_END,
) = range(7)
(
    DOUBLE_ADD,
    DOUBLE_SUBTRACT,
    DOUBLE_MULTIPLY,
    DOUBLE_DIVIDE,
    DOUBLE_REMAINDER,
    DOUBLE_NEGATE,
    DOUBLE_ABS,
    DOUBLES_END,
) = range(16, 24)
(
    DECIMAL_ADD,  # X, Y: the powers of ten that bring a and b to the result's scale
    DECIMAL_SUBTRACT,  # X, Y likewise
    DECIMAL_MULTIPLY,
    DECIMAL_REMAINDER,  # X, Y likewise
    LONG_TO_DOUBLE,
    DECIMAL_TO_DOUBLE,  # X: the power of ten that a is divided by
    DECIMALS_END,
) = range(32, 39)
(
    COMPARE_LONG,  # X: which outcomes are true, in this family throughout
    COMPARE_DOUBLE,
    COMPARE_DECIMAL,  # Y: a's factor, or minus b's factor
    COMPARE_DECIMAL_DOUBLE,  # Y: the power of ten that a is divided by
    COMPARE_STRING,
    IN_LONG,  # X: where the sorted items begin in the pool; Y: 2 * number of items, + 1 if NULL is among them
    IN_STRING,  # X, Y likewise
    COMPARISONS_END,
) = range(48, 56)
(
    AND,
    OR,
    NOT,
    IS_NULL,
    SELECT,  # b where a is true, else c
    COALESCE,
    LOGIC_END,
) = range(64, 71)
(
    LIKE,  # X: where the pattern begins in the pool; Y: its length
    LOWER,
    UPPER,
    STRINGS_END,
) = range(80, 84)
(
    DOUBLE_ROUND,
    DOUBLE_FLOOR,
    DOUBLE_CEIL,
    DOUBLE_SQRT,
    DOUBLE_TO_LONG,
    DECIMAL_FLOOR,  # X: the power of ten that a is divided by
    DECIMAL_CEIL,  # X likewise
    DECIMAL_TRUNCATE,  # X likewise
    DECIMAL_RESCALE,  # X: the power of ten by which a is multiplied (negative: divided); Y: the limit of the result
    ROUNDING_END,
) = range(96, 106)
(
    CHOOSE_LONG,  # X: 1 for the greater of a and b, −1 for the lesser
    CHOOSE_DOUBLE,  # X likewise
    CHOOSE_STRING,  # X likewise
    CHOICES_END,
) = range(112, 116)
(
    LENGTH,
    SUBSTR,  # a from code point b on; X: whether c says how many
    TRIM,
    CONCATENATE,
    LONG_TO_STRING,
    STRING_TO_LONG,
    TEXTS_END,
) = range(128, 135)
(
    HOUR,
    MINUTE,
    DAY_OF_WEEK,
    DAY,
    MONTH,
    YEAR,
    IN_ZONE,  # X: where in the pool the Y moments (ms) begin at which the zone's offset changes; Y + 1 offsets follow
) = range(144, 151)

# Items of a pattern. The bytes 0-255 stand for themselves.
ANY_ONE = 256
ANY_RUN = 257
