"""What monitoring counts of a batch: how many events, what became of them, why others were refused."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from railgun.ingest.answers import Answers, says_something
from railgun.ingest.intake import MalformedEventError
from railgun.ingest.result_table import LATE_WORDS
from railgun.telemetry.recording import StreamRecord
from railgun.wire.validator import EventRefusedError


def note_batch(record: StreamRecord, n: int, answers: Mapping[str, Answers]) -> None:
    """Count n events that were taken, and by partitioner what became of them."""
    record.events += n
    record.batches.add(n)
    for partitioner, each in answers.items():
        if says_something(each.late):
            for code, word in LATE_WORDS.items():
                _add(record.late, (partitioner, word), int(np.count_nonzero(each.late == code)))
        if says_something(each.duplicate):
            _add(record.duplicates, partitioner, int(np.count_nonzero(each.duplicate == 1)))


def note_refused(record: StreamRecord, refused: Iterable[EventRefusedError]) -> None:
    """Count events that were not taken."""
    for error in refused:
        record.refused["malformed" if isinstance(error, MalformedEventError) else "invalid"] += 1


def _add(counts: Any, key: Any, count: int) -> None:
    """A label that has nothing to count does not come into being."""
    if count:
        counts[key] += count
