"""The limit on a record of a log, in a module that loads nothing."""

RECORD_LIMIT_BYTES = 16 << 20
