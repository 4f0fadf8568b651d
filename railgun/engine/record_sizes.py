"""Rows whose records would be too large for the log are refused before any row of their table is taken."""

import numpy as np

from railgun.engine.errors import EventError
from railgun.messaging.transport import RECORD_LIMIT_BYTES
from railgun.wire.columns import REF_LENGTH_MASK, EventColumns
from railgun.wire.door import FieldError
from railgun.wire.encode import encode_columns

# A record's bytes beside its strings: at most so many for each value, and for what every record has.
_VALUE_BYTES, _HEAD_BYTES = 16, 256


def check_record_sizes(schema_version: int, events: EventColumns, first: int) -> None:
    """Raise EventError for the first row that cannot be recorded; first: the place of row 0 in its table.

    Records are made to be measured only of rows whose strings come near to the limit.
    """
    string_bytes = np.zeros(len(events), np.int64)
    for column in (events.ids, *events.fields):
        if column.heap is not None:
            string_bytes += (column.words & REF_LENGTH_MASK).view(np.int64)
    others_bytes = _VALUE_BYTES * len(events.fields) + _HEAD_BYTES
    for row in np.flatnonzero(string_bytes > RECORD_LIMIT_BYTES - others_bytes).tolist():
        record = encode_columns(schema_version, events.take(np.array([row])))
        size_bytes = int(record.offsets[-1])
        if size_bytes <= RECORD_LIMIT_BYTES:
            continue
        reason = f"its record would have {size_bytes} bytes, at most {RECORD_LIMIT_BYTES} are taken"
        message = f"row {first + row}: {reason}; send smaller events; no row of this table was taken"
        raise EventError([FieldError((), reason)], first + row, message)
