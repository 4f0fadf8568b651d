"""The answer to a client that wants no replies: how many events were taken, and why others were not.

The scoring route sends it.
"""

from collections.abc import Sequence

import msgspec

from frontend.problems import SHOWN_ERRORS_MAX, Problem


class RefusedEvent(msgspec.Struct):
    """An event that was refused. event: its place in the request, from 0."""

    event: int
    problem: Problem


class Receipt(msgspec.Struct):
    """The answer. accepted, refused: the numbers of events.  problems: those of the first refused events."""

    accepted: int = 0
    refused: int = 0
    problems: list[RefusedEvent] = []

    def note(self, answers: Sequence[object]) -> None:
        """Count the answers to the next events of the request."""
        for place, found in enumerate(answers, self.accepted + self.refused):
            if isinstance(found, Problem):
                self.refused += 1
                if len(self.problems) < SHOWN_ERRORS_MAX:
                    self.problems.append(RefusedEvent(place, found))
            else:
                self.accepted += 1
