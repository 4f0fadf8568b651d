"""Hands answers over to whoever looks at their values, a few each second, at next to no cost for the others."""

from collections.abc import Sequence

from railgun.telemetry.recording import StreamRecord

ROWS_MAX = 32
"""How many answers a sample has at most."""


def note_answers(record: StreamRecord, answers: Sequence[object]) -> None:
    """Add answers to the sample; of many, some that lie evenly among them. To be called if the record wants some."""
    sample = record.sample
    room = ROWS_MAX - len(sample)
    sample += answers[:: max(1, len(answers) // room)][:room]
    record.wants_sample = len(sample) < ROWS_MAX


def take_sample(record: StreamRecord) -> list[object]:
    """Return the sample, and begin a new one."""
    sample, record.sample = record.sample, []
    record.wants_sample = True
    return sample
