"""Measures a peer: where its window ends, what it makes of ties and disorder, and how fast it is beside this engine."""

import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.children import ChildFailedError
from bench.keeping import Figures, StoppedError, spread
from bench.load.latencies import Latencies
from bench.peers.catalog import Peer
from bench.peers.events import (
    BOUNDARY_WINDOW_MS,
    DISORDER_MS,
    Events,
    first_of,
    in_disorder,
    in_order,
    on_boundaries,
    write_lines,
)
from bench.peers.exact import Comparison, Expected, Values, compared, read_results
from bench.peers.on_broker import Broker, RunningOnBroker, broker_if
from bench.peers.process import Running, RunningPeer, Taken
from bench.peers.protocol import AGGREGATES, Task
from bench.peers.work import Work

_RUN_SECONDS, _RUN_SECONDS_ON_BROKER = 30.0, 15.0
_RUN_EVENTS_FLOOR = 1_000
_COMPARED_CARDS = 50
_COMPARED_EVENTS = 500


class WrongValuesError(Exception):
    """A peer's values are not the exact ones, so its speed says nothing."""


class TooSlowError(StoppedError):
    """A peer on a broker was stopped before its windows were full."""


def _started(peer: Peer, task: Task, broker: Broker | None) -> Running:
    if broker is None:
        return RunningPeer(peer.module, peer.arguments, task)
    records = len(task.windows_ms) if peer.answers_each_window else 1
    return RunningOnBroker(peer.module, peer.arguments, task, broker, records)


def _task(
    peer: Peer,
    events: Path,
    folder: Path,
    windows_ms: tuple[int, ...],
    disorder_ms: int,
    broker: Broker | None,
) -> Task:
    address = "" if broker is None else broker.address
    return Task(events, folder / "results.csv", windows_ms, disorder_ms, folder, address, peer.name)


def _new_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="railgun-peers-", ignore_cleanup_errors=True)


@contextmanager
def _folder() -> Iterator[Path]:
    with _new_folder() as name:
        yield Path(name)


@cache
def _shared_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that goes away with this process."""
    return _new_folder()


@cache
def _events_of(work: Work, events: int) -> tuple[list[Any], Path]:
    """Return the first events of a work, and their file. Peers share it: millions of lines take seconds to write."""
    made = first_of(in_order(work), events)
    path = Path(tempfile.mkdtemp(dir=_shared_folder().name)) / "events.ndjson"
    write_lines(made, path)
    return made, path


def _results(peer: Peer, made: list[Any], windows_ms: tuple[int, ...], disorder_ms: int) -> dict[str, Values]:
    """Have a peer process a few events, and return all its results."""
    events = Events.of(made)
    with _folder() as folder, broker_if(peer.on_broker) as broker:
        task = _task(peer, folder / "events.ndjson", folder, windows_ms, disorder_ms, broker)
        write_lines(made, task.events)
        with _started(peer, task, broker) as running:
            running.take(len(events))
        return read_results(task.results, events.ids)


def boundary_shift_ms(peer: Peer) -> int:
    """Return how much less than w a peer has to be told for a window (T - w, T]: 0, or 1 if its windows hold both ends.

    Raises WrongValuesError if neither is so.
    """
    made = on_boundaries()
    events = Events.of(made)
    got = _results(peer, made, (BOUNDARY_WINDOW_MS, BOUNDARY_WINDOW_MS - 1), 0)
    expected = Expected(events, [BOUNDARY_WINDOW_MS])
    exact = {id_: expected.on_arrival(place) for place, id_ in enumerate(events.ids)}
    for shift_ms in (0, 1):
        columns = slice(shift_ms * len(AGGREGATES), (shift_ms + 1) * len(AGGREGATES))
        found = compared(exact, {id_: values[columns] for id_, values in got.items()})
        if found.right == found.events:
            return shift_ms
    raise WrongValuesError(f"{peer.name}: its window of w or w - 1 ms is not (T - w, T]: {found}")


def disorder(peer: Peer, shift_ms: int) -> Figures:
    """Return which share of events at equal times, or out of order, has a result, and which is right in two senses."""
    made = in_disorder()
    events = Events.of(made)
    got = _results(peer, made, (BOUNDARY_WINDOW_MS - shift_ms,), DISORDER_MS)
    expected = Expected(events, [BOUNDARY_WINDOW_MS])
    on_arrival = compared(_exact(events, range(len(events)), expected.on_arrival), got)
    in_the_end = compared(_exact(events, range(len(events)), expected.in_the_end), got)
    return {
        "disorder_answered_share": on_arrival.answered / on_arrival.events,
        "disorder_right_on_arrival_share": on_arrival.right / on_arrival.events,
        "disorder_right_in_the_end_share": in_the_end.right / in_the_end.events,
    }


def _exact(events: Events, places: Any, values: Callable[[int], Values]) -> dict[str, Values]:
    return {events.ids[place]: values(place) for place in places}


class WarmPeer:
    """A peer whose window is full of a work's events. To be used in a `with` statement. Raises TooSlowError there."""

    def __init__(self, peer: Peer, work: Work, runs: int, shift_ms: int, broker: Broker | None) -> None:
        self._peer, self._work, self._shift_ms = peer, work, shift_ms
        self._broker = broker if peer.on_broker else None
        self._events = work.held + work.measured * (1 if peer.batch else runs)
        self._stack = ExitStack()

    def __enter__(self) -> "WarmPeer":
        with ExitStack() as stack:
            folder = stack.enter_context(_folder())
            windows_ms = tuple(window_ms - self._shift_ms for window_ms in self._work.windows_ms)
            self._made, path = _events_of(self._work, self._events)
            self._task = _task(self._peer, path, folder, windows_ms, 0, self._broker)
            peer = self._peer
            self._running: Running = stack.enter_context(_started(peer, self._task, self._broker))
            self._warmed = self._running.take(self._events if peer.batch else self._work.held)
            # Its first event is part of its start.
            if peer.on_broker and self._warmed.events < self._work.held - 1:
                raise self._too_slow()
            self._taken = self._warmed.events
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def measure(self) -> Taken:
        """Process as many events as are measured, or fewer if they would take long."""
        if self._peer.batch:
            return self._running.take(self._events)
        seconds = _RUN_SECONDS_ON_BROKER if self._peer.on_broker else _RUN_SECONDS
        quick = int(self._warmed.events / self._warmed.seconds * seconds)
        wanted = min(self._work.measured, max(quick, _RUN_EVENTS_FLOOR))
        taken = self._running.take(wanted)
        if taken.events < wanted:
            # It would work on while the others are measured.
            raise ChildFailedError(f"{self._peer.name}: {taken.events:,} of {wanted:,} results came in time")
        self._taken += taken.events
        return taken

    def pace(self, rate_per_s: float) -> Latencies:
        """Return the latencies of as many events as are measured, at a rate. Only of a peer on a broker."""
        assert isinstance(self._running, RunningOnBroker)
        latencies = Latencies()
        latencies.record(self._running.pace(self._work.measured, rate_per_s))
        self._taken += self._work.measured
        return latencies

    def _too_slow(self) -> TooSlowError:
        found, warmed = _figures([self._warmed]), self._warmed
        why = f"{self._peer.name} filled its windows at {found['events_per_s']:,.0f} events/s: stopped after "
        why += f"{warmed.seconds:.0f} s, with {warmed.events:,} of {self._work.held:,} events"
        return TooSlowError(why, {f"filling_{key}": value for key, value in found.items()})

    def comparison(self) -> Comparison:
        """Compare results of some cards, from all that was measured, and end the process."""
        self._running.__exit__(None, None, None)
        events = Events.of(self._made)
        places = np.arange(self._work.held, self._taken)
        places = places[events.cards[places] < _COMPARED_CARDS]
        count = min(len(places), _COMPARED_EVENTS)
        places = places[np.linspace(0, len(places) - 1, count).astype(np.int64)]
        expected = Expected(events, self._work.windows_ms)
        exact = _exact(events, places.tolist(), expected.on_arrival)
        return compared(exact, read_results(self._task.results, exact))


@contextmanager
def warm_peers(
    peers: Sequence[Peer], work: Work, runs: int, shifts_ms: Mapping[str, int]
) -> Iterator[dict[str, WarmPeer]]:
    """Yield peers whose windows are full, by name. Raises TooSlowError of the first, ChildFailedError of the others."""
    with ExitStack() as stack:
        broker = stack.enter_context(broker_if(any(peer.on_broker for peer in peers)))
        warm: dict[str, WarmPeer] = {}
        for peer in peers:
            try:
                warm[peer.name] = stack.enter_context(
                    WarmPeer(peer, work, runs, shifts_ms[peer.name], broker)
                )
            except TooSlowError as error:
                if peer is not peers[0]:
                    # That says nothing of the first.
                    raise ChildFailedError(str(error)) from None
                raise
        yield warm


def in_turn(warm: Mapping[str, WarmPeer], runs: int) -> Iterator[tuple[str, WarmPeer]]:
    """Yield each peer in each run. Another one goes first each time."""
    names = list(warm)
    for run in range(runs):
        first = run % len(names)
        yield from ((each, warm[each]) for each in names[first:] + names[:first])


def check_values(warm: Mapping[str, WarmPeer]) -> dict[str, Comparison]:
    """End all peers, and return how their values compare. Raises WrongValuesError if some are wrong."""
    found = {name: peer.comparison() for name, peer in warm.items()}
    for name, comparison in found.items():
        if comparison.right < comparison.events or not comparison.events:
            raise WrongValuesError(f"{name}: {comparison}")
    return found


def measured(peers: Sequence[Peer], work: Work, runs: int, shifts_ms: Mapping[str, int]) -> Figures:
    """Measure peers in turn, and return the figures of the first, with its ratios to the others.

    shifts_ms: by name, as `boundary_shift_ms` has found them.  Raises ChildFailedError, WrongValuesError, TooSlowError.
    """
    name, *others = [peer.name for peer in peers]
    taken: dict[str, list[Taken]] = {peer.name: [] for peer in peers}
    with warm_peers(peers, work, runs, shifts_ms) as warm:
        for each, peer in in_turn(warm, runs):
            taken[each].append(peer.measure())
        found = check_values(warm)[name]
    figures = _figures(taken[name]) | {
        "compared_events": found.events,
        "exact_share": found.exact / found.events,
        "largest_error": found.largest_error,
    }
    for other in others:
        pairs = list(zip(taken[name], taken[other], strict=True))
        figures |= spread(
            f"{other}_over", [_seconds(theirs) / _seconds(of_other) for theirs, of_other in pairs]
        )
        figures[f"{other}_over_by_cpu"] = statistics.median(
            _cpu_s(theirs) / _cpu_s(of_other) for theirs, of_other in pairs
        )
    return figures


def _seconds(taken: Taken) -> float:
    return taken.seconds / taken.events


def _cpu_s(taken: Taken) -> float:
    return taken.cpu_s / taken.events


def _figures(taken: list[Taken]) -> Figures:
    of_broker = {
        "broker_cpu_us_per_event": statistics.median(each.broker_cpu_s / each.events for each in taken) * 1e6,
        "broker_written_bytes_per_event": statistics.median(
            each.broker_written_bytes / each.events for each in taken
        ),
    }
    return {
        **spread("events_per_s", [each.events / each.seconds for each in taken]),
        **spread("cpu_us_per_event", [_cpu_s(each) * 1e6 for each in taken]),
        "written_bytes_per_event": statistics.median(each.written_bytes / each.events for each in taken),
        "rss_mib": max(each.resident_bytes for each in taken) / 2**20,
        "measured_events": taken[0].events,
        **(of_broker if of_broker["broker_cpu_us_per_event"] else {}),
    }
