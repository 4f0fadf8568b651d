"""What is asked and not answered is asked again, each time later: each time it is written to its tasks' logs."""

import threading
from typing import Any

import pytest

from frontend.problems import problem
from frontend.topics import answers
from frontend.topics.answers import AnswerThread
from frontend.topics.windows import Run, Windows
from railgun.telemetry.recording import StreamRecord
from tests.frontend.topics.test_writing_waits import ROUTE, TOPICS, WAIT_S, WHERE, HeldOutput, means_of

_TIMES = 8
_OUTAGE = 3


class Unanswering:
    """An exchange whose answers never come; at one time the broker takes nothing."""

    def __init__(self) -> None:
        self.pending_table: Any = self
        self.asked_ms: list[int] = []
        self.is_done = threading.Event()

    def check(self, *_: int) -> None:
        """There is room."""

    def ask(self, _: str, taken: Any, positions: Any, timeout_ms: int, settle: Any, run: Run) -> None:
        self.asked_ms.append(timeout_ms)
        if len(self.asked_ms) == _TIMES:
            self.is_done.set()
            return
        pending = Unanswered(run, problem(503, "full") if len(self.asked_ms) == _OUTAGE else None)
        threading.Thread(target=settle, args=([pending],)).start()


class Unanswered:
    """What settles without an answer."""

    left = 1

    def __init__(self, run: Run, error: Any) -> None:
        self.context, self.error = run, error


def test_each_time_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_AGAIN_S", 0.0)
    windows, exchange = Windows(TOPICS, 10, len), Unanswering()
    windows.assigned([WHERE])
    window = windows.of(WHERE)
    assert window is not None
    taken: Any = ()
    reading: Any = type("Reading", (), {"session_s": 1800.0})
    answering = AnswerThread(ROUTE, means_of(exchange), windows, reading, HeldOutput(), StreamRecord(), str)
    try:
        run = Run(window, 1, 0, 1, taken, [], [], 0.0)
        windows.add(run)
        assert answering.ask(run)
        assert exchange.is_done.wait(WAIT_S)
    finally:
        answering.close()
    # The time that the broker took nothing is not one that was waited.
    assert exchange.asked_ms == [1_000 * each for each in (30, 60, 120, 120, 240, 480, 960, 960)]
