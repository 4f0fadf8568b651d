"""The limit on the size of a log's record, in a module that imports nothing."""

RECORD_LIMIT_BYTES = 16 << 20
