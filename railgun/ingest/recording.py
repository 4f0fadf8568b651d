"""Counts events for monitoring: how many of a batch were taken, late, duplicate or refused.

Engines and front-ends call it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from railgun.ingest.answers import Answers, any_set
from railgun.ingest.intake import MalformedEventError
from railgun.ingest.result_table import LATE_WORDS
from railgun.telemetry.recording import StreamRecord
from railgun.wire.validator import EventRefusedError


def note_batch(record: StreamRecord, n: int, answers: Mapping[str, Answers]) -> None:
    """Count n events that were taken, and for each partitioner how many were late or duplicate."""
    record.events += n
    record.batches.add(n)
    for partitioner, each in answers.items():
        if any_set(each.late):
            for code, word in LATE_WORDS.items():
                _add(record.late, (partitioner, word), int(np.count_nonzero(each.late == code)))
        if any_set(each.duplicate):
            _add(record.duplicates, partitioner, int(np.count_nonzero(each.duplicate == 1)))


def note_refused(record: StreamRecord, refused: Iterable[EventRefusedError]) -> None:
    """Count events that were refused."""
    for error in refused:
        record.refused["malformed" if isinstance(error, MalformedEventError) else "invalid"] += 1


def _add(counts: Any, key: Any, count: int) -> None:
    """Add to a counter. A label whose count is 0 is not created."""
    if count:
        counts[key] += count
