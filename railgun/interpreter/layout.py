"""The layout of the interpreter's programs and of its context. The compiler and the interpreter both use it.

A program is data (docs/decisions/0001): tables of int64 words. A *node* is one (window, filter, group-by) of the plan,
with the cells that it owns in the rows of its group. Its update and result ops are runs of rows in two tables. Offsets
into rows are in bytes from the row's first word.
"""

NODE_WORDS = 40
(
    NODE_KIND,  # SLIDING, TUMBLING or INFINITE
    NODE_DELAY,  # d: the head edge is at T - d
    NODE_SIZE,  # w: sliding width, tumbling bucket
    NODE_HEAD,  # edge whose crossing rows are added; -1 if the head has no delay: only arrivals are added then
    NODE_TAIL,  # edge whose crossing rows are removed; -1 if no cursor makes events expire
    NODE_FILTER,  # hot column of the predicate; -1 if there is none
    NODE_GROUP,  # index of the group-by
    NODE_ENTITY,  # hot column of the group-by's entity hash
    NODE_BUCKET,  # byte offset of the bucket number (TUMBLING)
    NODE_UPDATES,  # first update op
    NODE_UPDATES_END,
    NODE_RESULTS,  # first result op
    NODE_RESULTS_END,
    NODE_BEFORE,  # first result op that is read before the record itself is added (EXCLUDE CURRENT)
    NODE_BEFORE_END,
    NODE_AFTER,  # the bound of its fill: only events after this time are in it; the least int64 where all are
    NODE_FILLED_TIME,  # (time, seq) up to which a filling node has read events; the greatest int64 once it is full
    NODE_FILLED_SEQ,
    NODE_SIMPLE,  # 1: it has only counts and sums, and is not tumbling (railgun.interpreter.simple)
    NODE_FIRST_CELL,  # byte offset of the first cell it owns
    NODE_PLAIN,  # 1: it has only a count of events, and the count of one column's values, with their sum if doubles
    NODE_PLAIN_ALL,  # byte offsets of its cells: count(*), count of values, sum; 0 if it has none
    NODE_PLAIN_COUNT,
    NODE_PLAIN_SUM,
    NODE_PLAIN_OP,  # index of the update op that reads the values
    NODE_PLAIN_OUT_ALL,  # index of the output that is computed from each of these; -1 where there is none
    NODE_PLAIN_OUT_COUNT,
    NODE_PLAIN_OUT_SUM,
    NODE_PLAIN_OUT_AVG,
    NODE_PLAIN_BEFORE_ALL,  # outputs that are read before the record itself is added
    NODE_PLAIN_BEFORE_COUNT,
    NODE_PLAIN_BEFORE_SUM,
    NODE_PLAIN_BEFORE_AVG,
) = range(33)

SLIDING, TUMBLING, INFINITE = range(3)
NO_BOUND = -(2**63)  # NODE_AFTER of a node that has all events
FULL = 2**63 - 1  # NODE_FILLED_TIME of a node that is not filling

UPDATE_WORDS = 8
(
    UPDATE_OP,
    UPDATE_CELL,  # byte offset of the cell in the row
    UPDATE_COUNT,  # byte offset of the argument's count cell
    UPDATE_COLUMN,  # hot column of the argument: WORD, or ENTITY for the hash of a string; -1 for count(*)
    UPDATE_STRING,  # hot column with the string's bytes; -1 where there is none
    UPDATE_TYPE,  # how values compare: INT, DOUBLE or STRING
) = range(6)

RESULT_WORDS = 8
(
    RESULT_OP,
    RESULT_CELL,
    RESULT_SQUARES,  # byte offset of the cell of squares (variances)
    RESULT_COUNT,
    RESULT_TYPE,
    RESULT_SCALE,  # decimal digits behind the point of the argument
    RESULT_OUT,  # index of the metric among the outputs
) = range(7)

# The context of `resolve` and `run`, int64 words.
(
    RUN_FIRST,  # first record to run
    RUN_LIMIT,  # one past the last record to run; the edges are complete up to here
    RUN_DRAIN,  # 1: apply the entries of record RUN_FIRST only: no arrivals, no results
    RUN_STRIDE,  # records that the per-group and per-metric arrays have room for
    RUN_STATUS,  # address of uint8[n]: not 0 if the record could not be read
    RUN_CLOCK,  # address of int64[n]: T(i)
    RUN_ACCEPTED,  # address of uint8[n]
    RUN_TIME,  # address of int64[n]: the accepted time of a record
    RUN_SLOT,  # address of int32[n]: the row of an accepted record in frame 0
    RUN_HASH_HI,  # address of int64[groups]: the address of each group's uint64[n], the entities' upper halves
    RUN_HASH_LO,
    RUN_GROUPS,
    RUN_ROWS,  # address of int64[groups][stride]: the entity's row of each record; 0 if it has none
    RUN_FRAMES,  # address of the reservoir's frame table
    RUN_EDGE_START,  # address of int64[edges]: first entry of each edge
    RUN_EDGE_END,
    RUN_ENTRY_AT,  # address of int32[]: the record at which an entry crosses
    RUN_ENTRY_FRAME,
    RUN_ENTRY_ROW,
    RUN_NODES,  # address of the node table, and the range of nodes to run
    RUN_NODE_FIRST,
    RUN_NODE_LAST,
    RUN_UPDATES,
    RUN_RESULTS,
    RUN_PAIRS,  # address of int64[pairs][3]: (edge, group, entity column) whose entries need rows
    RUN_PAIR_COUNT,
    RUN_TABLE,  # address of the entity table's context
    RUN_POOL,  # address of the page pool's context
    RUN_ENTITIES,  # address of int64[groups][stride]: the entity row of each entry
    RUN_ENTITIES_STRIDE,
    RUN_PREPARED,  # address of the prepared ops of the current node: for arrivals, its head and its tail
    RUN_STOPPED,  # the status that stopped a simple node
    RUN_MISSING,  # address of uint64[capacity][3]: (group, hi, lo) of rows that are not in memory
    RUN_MISSING_CAPACITY,
    RUN_MISSING_COUNT,
    RUN_NEXT_PAIR,  # where `resolve` continues: -1 for the records, else the pair, and the entry within it
    RUN_NEXT_ENTRY,
    RUN_OUT,  # address of uint64[metrics][stride][2]
    RUN_OUT_NULLS,  # address of uint8[metrics][stride]
    RUN_HEAP,  # address of the bytes of string results
    RUN_HEAP_CAPACITY,
    RUN_HEAP_USED,
    RUN_AT_NODE,  # where `run` continues: node, record, stage, next entry of the head and of the tail, op
    RUN_AT_RECORD,
    RUN_AT_STAGE,
    RUN_AT_HEAD,
    RUN_AT_TAIL,
    RUN_AT_OP,
    RUN_CALL,  # address of a block of arguments for railgun.interpreter.rare, and of its entry points
    RUN_ADD,
    RUN_REMOVE,
    RUN_RESET,
    RUN_RESULT,
    RUN_TEXT,
    RUN_EMPTY,  # address of a row of zeros (railgun.interpreter.reading)
) = range(55)
RUN_WORDS = 55

# Statuses of `resolve` and `run`, in addition to those of resident state (railgun.state.status).
MISSING = -16  # rows are not in memory, and have to be loaded
HEAP = -17  # string results need a larger heap
