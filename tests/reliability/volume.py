"""Logs of many events, and what a vectorised reading of the semantics says of them: counts and sums of windows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from railgun.task.processor import TaskIdentity, TaskProcessor
from railgun.task.recovery import open_task
from railgun.task.replies import Replies
from railgun.task.settings import TaskSettings
from railgun.wire.encode import encode_event
from railgun.wire.records import Records
from reservoir.files import DiskFiles
from tests.oracle.steps import Score
from tests.strategies.case import STREAM, Case
from tests.task.player import LogWriter

WINDOW_MS, DELAY_MS = 60_000, 30_000
START_MS = 1_700_000_000_000
NAMES = ("n", "total", "behind_n")
METRICS = (
    "SELECT count(*) AS n, sum(x) AS total FROM s GROUP BY k OVER SLIDING 1 MINUTE",
    "SELECT count(*) AS behind_n FROM s GROUP BY k OVER SLIDING 1 MINUTE DELAYED BY 30 SECONDS",
)


@dataclass
class Volume:
    """Events in log order: int64[n] each. Times may be out of order, ids may come again."""

    key: Any
    x: Any
    time: Any
    id: Any
    lateness_ms: int = 5_000
    discard: bool = False
    dedup_events: int = 1_000_000

    @property
    def definitions(self) -> str:
        lines = [
            f"[streams.{STREAM}]",
            'time = "ts"',
            'id = "id"',
            'partitioners = ["k"]',
            f'lateness = "{self.lateness_ms}ms"',
            f'late_policy = "{"discard" if self.discard else "rewrite"}"',
            f"dedup_events = {self.dedup_events}",
            f"[streams.{STREAM}.fields]",
            *(
                f'{name} = "{kind}"'
                for name, kind in zip(("id", "ts", "k", "x"), ("long", "timestamp", "long", "long"))
            ),
        ]
        for sql in METRICS:
            lines += ["[[metrics]]", f'sql = "{sql}"']
        return "\n".join(lines) + "\n"

    def case(self) -> Case:
        """The same for the brute-force oracle."""
        columns = zip(self.id.tolist(), self.time.tolist(), self.key.tolist(), self.x.tolist())
        steps = tuple(Score({"id": i, "ts": t, "k": k, "x": x}) for i, t, k, x in columns)
        n = len(steps)
        cuts = tuple(range(97, n, 97))
        return Case(self.definitions, steps, cuts, frozenset(cuts[::5]))


def ordered(seed: int, n: int, keys: int, pace_ms: int = 20) -> Volume:
    """Events in the order of time, `pace_ms` apart on average, over keys at random."""
    rng = np.random.default_rng(seed)
    time = START_MS + np.cumsum(rng.integers(0, 2 * pace_ms, n))
    return Volume(rng.integers(0, keys, n), rng.integers(-1000, 1000, n), time, np.arange(n))


@dataclass
class Answers:
    """What a task said: by metric int64[n]; late uint8[n] (0 no, 1 rewritten, 2 discarded); duplicate uint8[n]."""

    values: dict[str, Any]
    late: Any
    duplicate: Any


def expected(volume: Volume) -> Answers:
    """The semantics, vectorised: clocks are running maxima, windows are differences of two points on them."""
    n = len(volume.time)
    duplicate = _duplicates(volume)
    times = np.where(duplicate, np.iinfo(np.int64).min, volume.time)
    clock = np.maximum.accumulate(times)
    floor = np.concatenate([[np.iinfo(np.int64).min], clock[:-1] - volume.lateness_ms])
    is_late = ~duplicate & (volume.time < floor)
    accepted = ~duplicate & ~(is_late & volume.discard)
    counted = np.where(is_late, floor, volume.time)
    at = np.flatnonzero(accepted)

    def windowed(delay_ms: int, amount: Any) -> Any:
        enters = np.maximum(at, np.searchsorted(clock, counted[at] + delay_ms))
        leaves = np.maximum(enters, np.searchsorted(clock, counted[at] + delay_ms + WINDOW_MS))
        key = np.concatenate([volume.key[at], volume.key[at], volume.key])
        when = np.concatenate([enters, leaves, np.arange(n)])
        what = np.concatenate([amount[at], -amount[at], np.zeros(n, np.int64)])
        asked = np.concatenate([np.zeros(2 * len(at), np.int64), np.ones(n, np.int64)])
        order = np.lexsort((asked, when, key))
        sums = np.cumsum(what[order])
        first = np.flatnonzero(np.diff(key[order], prepend=key[order][0] - 1))
        before = np.concatenate([[0], sums])[first]
        run = np.cumsum(np.diff(key[order], prepend=key[order][0] - 1) != 0) - 1
        found = np.zeros(n, np.int64)
        questions = asked[order] == 1
        found[when[order][questions]] = (sums - before[run])[questions]
        return found

    ones = np.ones(n, np.int64)
    count = windowed(0, ones)
    values = {"n": count, "total": windowed(0, volume.x), "behind_n": windowed(DELAY_MS, ones)}
    late = np.where(is_late, 2 if volume.discard else 1, 0)
    return Answers(values, late, duplicate)


def _duplicates(volume: Volume) -> Any:
    """No late events are discarded where this is asked with ids that come again."""
    found = np.zeros(len(volume.id), bool)
    last: dict[int, int] = {}
    accepted = 0
    for i, event_id in enumerate(volume.id.tolist()):
        before = last.get(event_id)
        if before is not None and accepted - before <= volume.dedup_events:
            found[i] = True
            continue
        last[event_id] = accepted
        accepted += 1
    return found


def play_volume(
    volume: Volume,
    folder: Path,
    settings: TaskSettings,
    batches: Sequence[int],
    after_batch: Callable[[TaskProcessor], None],
) -> Answers:
    """Feed a task; `batches`: sizes, again and again. after_batch is called with the task behind each."""
    writer = LogWriter(Case(volume.definitions, ()))
    control = [record for _, record in writer.records]
    columns = zip(volume.id.tolist(), volume.time.tolist(), volume.key.tolist(), volume.x.tolist())
    events = [encode_event(writer.version, str(i), t, (i, t, k, x)) for i, t, k, x in columns]
    n = len(events)
    found = Answers(
        {name: np.zeros(n, np.int64) for name in NAMES}, np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    )

    def deliver(replies: Replies) -> None:
        assert not replies.decoded.status[: replies.n].any()
        rows = slice(replies.first_offset - len(control), replies.first_offset - len(control) + replies.n)
        for index, name in enumerate(replies.names):
            known = replies.out[index, : replies.n, 0].view(np.int64)
            found.values[name][rows] = np.where(replies.nulls[index, : replies.n] != 0, 0, known)
        found.late[rows], found.duplicate[rows] = replies.late, replies.duplicate

    identity = TaskIdentity(STREAM, "k", 0, b"0123456789abcdef")
    task = open_task(folder, identity, DiskFiles(), lambda first, end: iter(()), settings)
    try:
        task.process(Records.of(control), 0, deliver)
        done = turn = 0
        while done < n:
            size = batches[turn % len(batches)]
            task.process(Records.of(events[done : done + size]), len(control) + done, deliver)
            task.work()
            after_batch(task)
            done, turn = done + size, turn + 1
    finally:
        task.close()
    return found


def assert_equal(wanted: Answers, got: Answers) -> None:
    for name in NAMES:
        wrong = np.flatnonzero(wanted.values[name] != got.values[name])
        assert not len(wrong), f"{name}: {len(wrong)} wrong, the first at event {wrong[0]}"
    assert (wanted.late == got.late).all()
    assert (wanted.duplicate == got.duplicate).all()
