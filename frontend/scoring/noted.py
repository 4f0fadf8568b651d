"""Hands answers over to whoever looks at their values, a few each second, at next to no cost for the others."""

from collections.abc import Sequence

from railgun.telemetry.recording import StreamRecord

ROWS_MAX = 32
"""How many answers are noted at most until they are taken."""


def note_answers(record: StreamRecord, answers: Sequence[object]) -> None:
    """Note answers; of many, some that lie evenly among them. To be called if the record wants some."""
    noted = record.noted
    room = ROWS_MAX - len(noted)
    # Another thread may have noted some since the caller looked.
    if room > 0:
        noted += answers[:: max(1, len(answers) // room)][:room]
    record.wants_answers = len(noted) < ROWS_MAX


def take_noted(record: StreamRecord) -> list[object]:
    """Return what was noted, and begin anew."""
    noted, record.noted = record.noted, []
    record.wants_answers = True
    return noted
