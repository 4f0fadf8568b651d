"""The workloads of figure 9, as data: windows with many different edges (9b), and windows of many lengths (9a)."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.paper.budget import FIGURE_S
from bench.payments import Payments
from bench.unit_cases import MIB, Workload
from railgun.task.settings import TaskSettings

DEFAULT_CACHE_BYTES = TaskSettings().chunk_cache_bytes
CACHES_BYTES = (DEFAULT_CACHE_BYTES, 16 * MIB, 4 * MIB)
EDGES = (20, 60, 120, 180, 240, 480, 1_000)
_CHUNK_EVENTS = TaskSettings().chunk_events
# The edges of 9b lie within so many chunks, evenly: from 240 edges on, each chunk has one or more.
_SPAN_CHUNKS, _SPAN_CHUNKS_FLOOR = 240, 10
_EDGES_RATE_PER_S = 2_000.0
_EDGES_CARDS, _EDGES_SETTLING = 10_000, 20_000
_SINGLES_S, _SINGLES_S_FLOOR = 20.0, 2.0
_EDGES_FILL_S = 600.0
_ROWS_BYTES = 1_024 * MIB
_LENGTHS_RATE_PER_S = 500.0
_NARROW, _WIDE = 5, 103
# More than an event has in a reservoir, in bytes, by its fields.
_EVENT_BYTES_MAX = {_NARROW: 60, _WIDE: 1_500}
_THREE = "sum(amount) AS s{n}, avg(amount) AS a{n}, count(amount) AS c{n}"


@dataclass(frozen=True, slots=True)
class Length:
    """A window of figure 9a, and how many fields its events have."""

    window_ms: int
    fields: int


_MINUTE_MS = 60_000
_DAY_MS = 24 * 60 * _MINUTE_MS
LENGTHS: dict[str, Length] = {
    "window_5min_wide": Length(5 * _MINUTE_MS, _WIDE),
    "window_1h_wide": Length(60 * _MINUTE_MS, _WIDE),
    "window_5min": Length(5 * _MINUTE_MS, _NARROW),
    "window_1h": Length(60 * _MINUTE_MS, _NARROW),
    "window_1d": Length(_DAY_MS, _NARROW),
    "window_7d": Length(7 * _DAY_MS, _NARROW),
}
NOT_MEASURED = {
    "window_1d_wide": "a day of events of 103 fields is 66 GB of input",
    "window_7d_wide": "a week of events of 103 fields is 460 GB of input",
}
"""The cases of figure 9a that are left out, and why."""


@dataclass(frozen=True, slots=True)
class Case:
    """One point of a figure.

    name: in the results.  workload: what is measured.  singles, singles_s: how many events are measured one by one, and
    for how long at most.  fill_s: how long filling takes at most.
    disk_bytes: what its task may need on disk, estimated from above.
    """

    name: str
    workload: Workload
    singles: int
    disk_bytes: float
    singles_s: float
    fill_s: float = FIGURE_S

    @property
    def fill(self) -> int:
        """The number of events that fill the windows."""
        return self.workload.warm_up


def delays_ms(edges: int, span_ms: int) -> tuple[int, list[int]]:
    """Return the length of windows and their delays, so that there are so many different edges within a span.

    A window has a head and a tail edge. Heads are spaced evenly, and each tail lies amid two heads.
    """
    windows = edges // 2
    step_ms = span_ms // (windows + 1)
    length_ms = step_ms // 2
    return length_ms, [1 + step_ms * place for place in range(windows)]


def _singles_s(factor: float) -> float:
    return max(_SINGLES_S_FLOOR, _SINGLES_S * factor)


def edges_case(edges: int, cache_bytes: int, scale: float) -> Case:
    """Return the case of so many different edges. A smaller scale has fewer chunks, and less cache."""
    chunks = max(_SPAN_CHUNKS_FLOOR, int(_SPAN_CHUNKS * min(1.0, scale)))
    factor = chunks / _SPAN_CHUNKS
    span_ms = int(chunks * _CHUNK_EVENTS / _EDGES_RATE_PER_S * 1_000)
    length_ms, delays = delays_ms(edges, span_ms)
    payments = Payments(
        events=10**11, cards=_EDGES_CARDS, rate_per_s=_EDGES_RATE_PER_S, rhythm=False, fields=5
    )
    workload = Workload(
        tuple(f"SLIDING {length_ms} MILLISECONDS DELAYED BY {delay} MILLISECONDS" for delay in delays),
        delays[-1] + length_ms,
        payments,
        max(20_000, int(100_000 * factor)),
        select=_THREE,
        settling=_EDGES_SETTLING,
        limits={
            "row_cache_bytes": _ROWS_BYTES,
            "chunk_cache_bytes": int(cache_bytes * factor),
        },
    )
    name = f"edges_{edges}_cache_{cache_bytes // MIB}"
    return Case(
        name,
        workload,
        max(5_000, int(50_000 * factor)),
        workload.warm_up * 60.0,
        _singles_s(factor),
        _EDGES_FILL_S,
    )


def edges_cases(scale: float) -> list[Case]:
    """Return the cases of figure 9b: for each size of the cache, one for each number of edges."""
    return [edges_case(edges, cache, scale) for cache in CACHES_BYTES for edges in EDGES]


def length_case(name: str, scale: float) -> Case:
    """Return the case of a window's length. At a smaller scale fewer events come in a second of event time."""
    length = LENGTHS[name]
    factor = min(1.0, scale)
    payments = Payments(
        events=10**11,
        cards=100_000,
        rate_per_s=_LENGTHS_RATE_PER_S * factor,
        rhythm=False,
        fields=length.fields,
    )
    workload = Workload(
        (f"SLIDING {length.window_ms} MILLISECONDS",),
        length.window_ms,
        payments,
        max(20_000, int((200_000 if length.fields == _WIDE else 1_000_000) * factor)),
        select="sum(amount) AS s{n}",
        drop_page_cache=True,
    )
    # They take longer than from one checkpoint to the next, so each run has one.
    singles = max(5_000, int(400_000 * factor))
    return Case(
        name, workload, singles, float(workload.warm_up * _EVENT_BYTES_MAX[length.fields]), _singles_s(factor)
    )


def length_cases(scale: float) -> list[Case]:
    """Return the cases of figure 9a."""
    return [length_case(name, scale) for name in LENGTHS]


FIGURES: dict[str, Callable[[float], list[Case]]] = {"fig9b": edges_cases, "fig9a": length_cases}
