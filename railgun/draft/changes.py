"""Chooses which of Debezium's changes of rows are events of a stream."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from railgun.draft.envelopes import Envelope
from railgun.draft.errors import DraftError
from railgun.draft.sample import Sample
from railgun.wording import counted

_WORDS = {
    "c": "creation (c)",
    "r": "snapshot row (r)",
    "u": "update (u)",
    "d": "delete (d)",
    "t": "truncation (t)",
    "m": "message (m)",
    "": "change of another kind",
}
_PLURALS = {each: word.replace(" (", "s (") for each, word in _WORDS.items()} | {"": "changes of other kinds"}
_NEW = ("c", "r")


@dataclass(frozen=True, slots=True)
class Changes:
    """Which changes of a sample are events.

    operations: those of events.
    sample: the events.
    note: how many changes there are, and why these are taken, in words.
    """

    operations: tuple[str, ...]
    sample: Sample
    note: str

    def condition(self, field: str) -> str:
        """Return the condition that an event fulfils. field: the name of its operation."""
        operations = ", ".join(f"'{each}'" for each in self.operations)
        return f"{field} IN ({operations})"


def changes_of(sample: Sample, envelope: Envelope) -> Changes:
    """Return which changes are events: new rows. An update is of a row that was an event already: it is one where the
    sample has no new rows.

    Raises DraftError if no change has a row.
    """
    operations = [_operation(document, envelope) for document in sample.documents]
    counts = Counter(operations)
    taken = _NEW if any(counts[each] for each in _NEW) else (*_NEW, "u")
    rows = [row for row, each in enumerate(operations) if each in taken]
    if not rows:
        raise DraftError(
            f"{sample.place}: none of its changes has a row: {_listed(counts, counts)}; write some, then run this again"
        )
    notes = [f"taken: {_listed(counts, taken)}"]
    if len(rows) < len(operations):
        notes.append(f"left out: {_listed(counts, counts.keys() - set(taken))}")
    if "u" in taken:
        notes.append("updates only as there are no new rows: are they events?")
    elif counts["u"]:
        notes.append("an update is the next version of a row that was an event")
    part = replace(
        sample,
        documents=[sample.documents[row] for row in rows],
        records=[sample.records[row] for row in rows if sample.records],
        lanes=[sample.lanes[row] for row in rows if sample.lanes],
    )
    return Changes(taken, part, "; ".join(notes))


def _operation(document: Mapping[str, Any], envelope: Envelope) -> str:
    """Return a change's operation; empty for one that is not known."""
    found: Any = document
    for step in envelope.operation:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) and found in _WORDS else ""


def _listed(counts: Mapping[str, int], operations: Collection[str]) -> str:
    """Return how many changes there are of some operations."""
    return ", ".join(
        counted(counts[each], _WORDS[each], _PLURALS[each])
        for each in _WORDS
        if each in operations and counts.get(each)
    )
