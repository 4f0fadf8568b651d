"""The report of a validation: a table for people, JSON for programs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any

from railgun.spark.validation.time_range import ALL_TIMES, TimeRange

EXAMPLES = 5
"""The number of wrong replies that are shown."""


@dataclass(frozen=True, slots=True)
class Example:
    """A wrong reply.

    row: the number of its event, from 0.
    place: where the event or the reply is, if a service is validated.
    """

    row: int
    id: str
    expected: str
    got: str
    place: str | None = None


def shown(value: object, scale: int = 0) -> str:
    """Return a value as text for people. scale: the decimal places of a decimal that is held as a whole number."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value.scaleb(-scale):f}" if isinstance(value, Decimal) else str(value)


@dataclass(frozen=True, slots=True)
class MetricCheck:
    """The result for one column of the replies.

    compared: the number of values compared.
    mismatches: the number of wrong values.
    beyond: the number of values that doubles cannot decide, because an intermediate sum leaves their range.
    difference: the largest difference between doubles; None for values that are compared exactly.
    not_checked: the reason why nothing was compared; None if values were.
    """

    name: str
    compared: int = 0
    mismatches: int = 0
    beyond: int = 0
    difference: float | None = None
    not_checked: str | None = None
    examples: tuple[Example, ...] = ()

    def plus(self, more: "MetricCheck") -> "MetricCheck":
        """Return the sum of this check and another one of the same name."""
        differences = [each.difference for each in (self, more) if each.difference is not None]
        return replace(
            self,
            compared=self.compared + more.compared,
            mismatches=self.mismatches + more.mismatches,
            beyond=self.beyond + more.beyond,
            difference=max(differences, default=None),
            examples=(*self.examples, *more.examples)[:EXAMPLES],
        )


@dataclass(frozen=True, slots=True)
class NotCompared:
    """The replies at a partitioner that were not compared, and why."""

    partitioner: str
    replies: int
    reason: str

    @classmethod
    def of_mixed_ids(cls, partitioner: str, replies: int) -> "NotCompared":
        """Return the entry for replies to ids that events with the partitioner's field and events without it have."""
        return cls(
            partitioner,
            replies,
            f"their ids came with {partitioner} and without it, and nothing tells which of these a reply is to",
        )

    def as_text(self) -> str:
        """Return this as text for people."""
        return f"{self.partitioner}: {self.replies:,} replies were not compared: {self.reason}"


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """The history that came before a service's log.

    history: its id.
    places: where the rows were read.
    cut_ms: the history's events are those before this time.
    rows: the number of rows read.
    events: the number of rows that are events before the cut.
    refused: the number of rows that are not events.
    """

    history: str
    places: tuple[str, ...]
    cut_ms: int
    rows: int
    events: int
    refused: int

    def as_text(self) -> str:
        """Return this as text for people."""
        details = f", {self.refused:,} refused" if self.refused else ""
        return (
            f"history {self.history}, read again from {', '.join(self.places)}: {self.rows:,} rows{details}, "
            f"{self.events:,} events before {self.cut_ms} ms; replies to events after its record in the log must "
            "count them"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """The report of one stream.

    events: the number of events in the log.
    refused: the number of rows that are not events.
    sample: the share of entities (values of a grouping) that were compared.
    times: the range of the events whose replies were compared.
    in_range: the number of events in this range; None if all are.

    These are only of a service:
    replies: the number of recorded replies.
    unanswered: the number of events, over all partitioners, without a recorded reply.
    not_compared: by partitioner, the replies that were left out.
    history: the history before the log.
    """

    stream: str
    events: int
    refused: int
    seconds: float
    checks: Sequence[MetricCheck]
    sample: float | None = None
    times: TimeRange = ALL_TIMES
    in_range: int | None = None
    replies: int | None = None
    unanswered: int = 0
    not_compared: Sequence[NotCompared] = ()
    history: ReadHistory | None = None

    @property
    def values(self) -> int:
        """The number of values compared."""
        return sum(check.compared for check in self.checks)

    @property
    def mismatches(self) -> int:
        """The number of wrong values."""
        return sum(check.mismatches for check in self.checks)

    @property
    def undecided(self) -> int:
        """The number of values for which doubles cannot decide whether they are right."""
        return sum(check.beyond for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values for programs."""
        return {
            "stream": self.stream,
            "equal": self.mismatches == 0,
            "events": self.events,
            "refused": self.refused,
            "values": self.values,
            "mismatches": self.mismatches,
            "undecided": self.undecided,
            "seconds": round(self.seconds, 3),
            "events_per_s": round(self.events / self.seconds) if self.seconds else 0,
            "sample": self.sample,
            **({} if self.in_range is None else {**asdict(self.times), "in_range": self.in_range}),
            **({} if self.replies is None else {"replies": self.replies, "unanswered": self.unanswered}),
            **({"not_compared": [asdict(each) for each in self.not_compared]} if self.not_compared else {}),
            **({} if self.history is None else {"history": asdict(self.history)}),
            "metrics": [asdict(check) for check in self.checks],
        }

    def as_text(self) -> str:
        """Return the report as text for people."""
        width = max([len(check.name) for check in self.checks] + [len("reply")])
        lines = [f"{'reply':{width}}  {'compared':>14}  {'wrong':>10}  {'largest difference':>18}"]
        for check in self.checks:
            if check.not_checked is not None:
                lines.append(f"{check.name:{width}}  not checked: {check.not_checked}")
                continue
            off = "exact" if check.difference is None else f"{check.difference:.3g}"
            lines.append(f"{check.name:{width}}  {check.compared:14,}  {check.mismatches:10,}  {off:>18}")
            if check.beyond:
                lines.append(
                    f"{'':{width}}  {check.beyond:,} values could not be decided: beyond the range of doubles"
                )
        for check in self.checks:
            for each in check.examples:
                place = each.place or f"row {each.row}"
                lines.append(
                    f"{check.name}: {place}, id {each.id}: recorded {each.got}, should be {each.expected}"
                )
        lines += [each.as_text() for each in self.not_compared]
        if self.history is not None:
            lines.append(self.history.as_text())
        sampled = "" if self.sample is None else f", of {self.sample:.4%} of the entities"
        refused = f" ({self.refused:,} rows refused)" if self.refused else ""
        if self.replies is not None:
            refused += f", {self.replies:,} replies ({self.unanswered:,} events without one)"
        if self.in_range is not None:
            refused += f", {self.in_range:,} of these {self.times.as_text()}"
        lines.append(
            f"{self.events:,} events{refused}, {self.values:,} values compared{sampled}: {self._verdict()}"
        )
        return "\n".join(lines)

    def _verdict(self) -> str:
        """Return the line that sums up the values."""
        found = {"WRONG": self.mismatches, "undecided": self.undecided}
        equal = self.values - sum(found.values())
        parts = [f"{count:,} {what}" for what, count in found.items() if count]
        verdict = ", ".join([f"{equal:,} equal", *parts]) if parts else "all equal"
        left_out = [
            f"{each.replies:,} replies not compared at {each.partitioner}" for each in self.not_compared
        ]
        return "; ".join([verdict, *left_out])
