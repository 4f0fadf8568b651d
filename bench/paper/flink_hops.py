"""Flink's side of figure 8: hopping windows with an answer for each event, by topics, at the figure's rate."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from bench.children import Child, ChildFailedError
from bench.http_run import check
from bench.kafka import running_local_broker
from bench.keeping import Figures, Keeping, StoppedError
from bench.load.injector import inject
from bench.load.order import Order
from bench.load.outcome import Outcome
from bench.load.schedule import Phase, Schedule
from bench.paper.budget import Budget, check_disk
from bench.paper.hops import Sums, figures
from bench.paper.pace import (
    BEHIND_SHARE,
    EVENT_BYTES_MAX,
    RATE_PER_S,
    WINDOW_MS,
    latency_figures,
    payments,
    seconds,
)
from bench.payments import Payments, blocks
from bench.peers import flink_program
from bench.peers.exact import TOLERANCE
from bench.peers.measuring import WrongValuesError
from bench.peers.on_broker import make_topics
from bench.peers.packages import pinned
from bench.peers.protocol import Task
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport

FLINK_HOPS_S = (300, 60, 10, 1)
BACKENDS = {"rocksdb": "rocksdb", "heap": "hashmap"}
"""Flink's state backends: what they are called here, and by Flink."""
NOT_MEASURED = {
    "flink_hops_full_window": (
        "the window of 60 minutes is not full in 7 minutes: an event updates as many hopping windows as it would later,"
        " but there are fewer in the state"
    ),
    "flink_hops_sql": "HOP in SQL answers when a window ends, not for each event",
}
"""What figure 8 does not show of Flink, and why."""

_SETUP = "tuned"
# For how long answers are waited for after the last event, and for those of the comparison, with the start.
_GRACE_S, _START_S = 20.0, 600.0
# Events whose values are compared: two windows of few cards. With hops of 1 s each of them takes 3,600 updates.
_COMPARED_EVENTS, _COMPARED_CARDS, _COMPARED_WINDOWS = 1_000, 5, 2
# In a short run the backlog may grow by so many seconds' events: last answers come late.
_BEHIND_S = 1.0
_STATE_BYTES_MAX = 4 << 30
_READ_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Hopping:
    """A system with hopping windows: `python -m module arguments TASK`, from topic to topic."""

    module: str
    arguments: tuple[str, ...]
    hop_s: int


class _Result(msgspec.Struct):
    id: str
    s: float


def flink_hops(scale: float, keeping: Keeping, budget: Budget) -> bool:
    """Measure Flink with each backend and hop. Returns whether all that can run here has figures."""
    complete = True
    for called, backend in BACKENDS.items():
        for hop_s in FLINK_HOPS_S:
            name = f"flink_hop_{hop_s}s_{called}"
            if why := flink_program.missing():
                keeping.skip(name, why)
                continue
            system = Hopping("bench.peers.flink_hop", (backend, _SETUP, str(hop_s * 1_000)), hop_s)
            version = pinned(flink_program.PACKAGE)
            complete &= keeping.attempt(name, version, partial(measured, system, scale, budget))
    for name, why in NOT_MEASURED.items():
        keeping.skip(name, why)
    return complete


def measured(system: Hopping, scale: float, budget: Budget) -> Figures:
    """Compare the values of a system with exact ones, then return its latencies at the figure's rate.

    Raises StoppedError with figures if it does not keep up, ChildFailedError if it ends, WrongValuesError if its values
    are not those of hopping windows, BudgetError.
    """
    pace = Schedule(tuple(Phase(round(RATE_PER_S * each), each) for each in seconds(scale)))
    check_disk(pace.requests * EVENT_BYTES_MAX + _STATE_BYTES_MAX)
    budget.check_time(_START_S + pace.seconds + _GRACE_S)
    with running_local_broker() as broker, tempfile.TemporaryDirectory(prefix="railgun-paper-") as folder:
        task = Task(Path(), Path(), (WINDOW_MS,), 0, Path(folder), broker.address, "hops")
        make_topics(task)
        with Child(system.module, [*system.arguments, task.as_text()]) as child:
            errors = _errors(system, task, child)
            # Event time goes on where no window has an event of the comparison.
            later = payments(scale, 103)
            later = replace(later, start_ms=later.start_ms + 2 * _COMPARED_WINDOWS * WINDOW_MS)
            found = _injected(_order(task, later, pace, _GRACE_S), child)
    return paced_figures(system, found, errors)


def paced_figures(system: Hopping, found: Outcome, errors: Figures) -> Figures:
    """Return the figures of a paced run. Raises StoppedError with them if the backlog grew all the time."""
    behind_per_s = max(0.0, RATE_PER_S - found.events_per_s)
    made = {
        "hop_s": float(system.hop_s),
        **latency_figures(found.by_phase[-1]),
        "answered_events_per_s": found.events_per_s,
        "backlog_events_per_s": behind_per_s,
        "unanswered_share": found.bad / found.events,
        **errors,
    }
    run_s = (found.last_done_ns - found.first_sent_ns) / 1e9
    if behind_per_s * run_s > RATE_PER_S * max(BEHIND_SHARE * run_s, _BEHIND_S):
        why = f"it does not keep up with {RATE_PER_S:g} events/s: it answers {found.events_per_s:.0f},"
        why += f" and its backlog grows by {behind_per_s:.0f} events each second"
        raise StoppedError(why, made)
    return made


def _order(task: Task, made: Payments, schedule: Schedule, grace_s: float) -> Order:
    host, _, port = task.broker.rpartition(":")
    stem = task.input.removesuffix(".in")
    return Order(host, int(port), stem, schedule, made, grace_s=grace_s, is_topic=True)


def _injected(order: Order, child: Child) -> Outcome:
    """Send all events of an order. Raises ChildFailedError if the system has ended."""
    found = inject(order)
    if (code := child.process.poll()) is not None:
        raise ChildFailedError(f"{child.name}: ended with code {code}")
    return found


def _errors(system: Hopping, task: Task, child: Child) -> Figures:
    """Have a system answer a few events, and return by how much its sums are too small."""
    rate_per_s = _COMPARED_EVENTS * 1_000 / (_COMPARED_WINDOWS * WINDOW_MS)
    few = Payments(
        _COMPARED_EVENTS, cards=_COMPARED_CARDS, card_exponent=0.0, rate_per_s=rate_per_s, rhythm=False
    )
    order = _order(task, replace(few, events=10**11), Schedule.burst(_COMPARED_EVENTS), _START_S)
    check(_injected(order, child))
    made, answered = list(blocks(few)), dict(_answers(task))
    ids = [id_ for batch in made for id_ in batch.column("tx_id").to_pylist()]
    sums = Sums.of(made)
    places = sums.places(WINDOW_MS).tolist()
    got = np.array([answered[ids[place]] for place in places])
    wanted = sums.hopping(WINDOW_MS, system.hop_s * 1_000)
    if not np.allclose(got, wanted, rtol=TOLERANCE, atol=0.0):
        differ = int((~np.isclose(got, wanted, rtol=TOLERANCE, atol=0.0)).sum())
        raise WrongValuesError(
            f"{system.module}: {differ} of {len(places)} sums are not those of windows that hop by {system.hop_s} s"
        )
    return figures(1.0 - got / sums.exact(WINDOW_MS))


def _answers(task: Task) -> Iterator[tuple[str, float]]:
    """Yield the id and the sum of each result so far."""
    decoder, offset = msgspec.json.Decoder(_Result), 0
    with KafkaTransport(KafkaSettings(task.broker)) as log:
        while offset < log.end_offset(task.output, 0):
            fetched = log.read(task.output, 0, offset, _COMPARED_EVENTS, _READ_BYTES)
            for each in map(decoder.decode, fetched.values()):
                yield each.id, each.s
            offset = fetched.next_offset
