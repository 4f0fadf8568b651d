"""The report of a backfill: what it read, refused and built, as text for people and JSON for programs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from railgun.history.manifest import HistoryManifest
from railgun.spark.backfill.rows import Counts


@dataclass(frozen=True, slots=True)
class BackfillReport:
    """The report of a backfill.

    built: how many tasks this run has built; an earlier run has built the others.
    seconds: the time that this run took.
    own: by task, how many events a live stream that is deepened had itself; None for other backfills.
    zoneless: fields whose times had no zone, and were taken as UTC.
    has_bounds: whether a deepened stream has a metric that may lack some of its own events.
    """

    stream: str
    history: str
    cut_ms: int
    counts: Counts
    tasks: Sequence[HistoryManifest]
    built: int
    seconds: float
    own: Sequence[int] | None = None
    zoneless: Sequence[str] = ()
    has_bounds: bool = False

    @property
    def added(self) -> list[int] | None:
        """By task, the number of events that the stream did not have; None if it is not deepened."""
        if self.own is None:
            return None
        return [max(0, each.events - each.duplicates - own) for each, own in zip(self.tasks, self.own)]

    @property
    def is_empty(self) -> bool:
        """Whether no row became an event before the cut."""
        return self.events == 0

    @property
    def changes_nothing(self) -> bool:
        """Whether the live stream, and each of its metrics, had all of the events already."""
        return self.added is not None and not any(self.added) and not self.has_bounds

    @property
    def events(self) -> int:
        """The number of rows that became events before the cut."""
        counts = self.counts
        return counts.read - counts.refused_rows - counts.after_cut - counts.nowhere

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values for programs."""
        counts = self.counts
        return {
            "stream": self.stream,
            "history": self.history,
            "cut_ms": self.cut_ms,
            "rows": counts.read,
            "events": self.events,
            "after_cut": counts.after_cut,
            "taken_as_utc": list(self.zoneless),
            "nowhere": counts.nowhere,
            "refused": {
                reason: {"rows": each.rows, "examples": each.examples}
                for reason, each in sorted(counts.refused.items())
            },
            "tasks": [
                {
                    "partitioner": each.partitioner,
                    "partition": each.partition,
                    "events": each.events,
                    "duplicates": each.duplicates,
                    "first_ms": each.first_ms,
                    "last_ms": each.last_ms,
                    **({} if added is None else {"added": added}),
                }
                for each, added in self._tasks
            ],
            "built": self.built,
            "seconds": round(self.seconds, 3),
            "events_per_s": round(self.events / self.seconds) if self.seconds else 0,
        }

    @property
    def _tasks(self) -> Iterable[tuple[HistoryManifest, int | None]]:
        none: list[int | None] = [None] * len(self.tasks)
        return zip(self.tasks, none if self.added is None else self.added)

    def as_text(self) -> str:
        """Return the report as text for people."""
        counts = self.counts
        heading = "" if self.own is None else f"{'added':>14}  "
        lines = [f"{'task':24}  {'events':>14}  {'duplicates':>10}  {heading}from                      to"]
        for each, added in self._tasks:
            name = f"{each.partitioner}/{each.partition}"
            span = f"{_when(each.first_ms):24}  {_when(each.last_ms)}"
            new = "" if added is None else f"{added:14,}  "
            lines.append(f"{name:24}  {each.events:14,}  {each.duplicates:10,}  {new}{span}")
        if self.zoneless:
            lines.append(f"times without a zone were taken as UTC: {', '.join(self.zoneless)}")
        for reason, refused in sorted(counts.refused.items()):
            lines.append(f"refused, {reason}: {refused.rows:,} rows")
            for event_id, why in refused.examples:
                named = f"id {event_id}" if event_id else "no id"
                lines.append(f"  {named}{': ' if why else ''}{why}")
        if counts.nowhere:
            lines.append(f"{counts.nowhere:,} events have no partitioner's field and are kept nowhere")
        if counts.after_cut:
            lines.append(f"{counts.after_cut:,} events at or after {_when(self.cut_ms)} are left to the log")
        lines.append(
            f"{self.stream}: {self.events:,} events of {counts.read:,} rows in {self.seconds:.1f} s; "
            f"{self.built} of {len(self.tasks)} tasks built now"
        )
        return "\n".join(lines)


def _when(time_ms: int | None) -> str:
    if time_ms is None:
        return "-"
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
