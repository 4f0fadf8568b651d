"""The thread that writes answers, where it may not write for now."""

import logging
import threading
from collections.abc import Callable
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest

from frontend.topics.answers import AnswerThread
from frontend.topics.route import Route
from frontend.topics.stream_output import StreamOutput
from frontend.topics.windows import Run, Windows
from railgun.catalog.model import ReplyKey
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.kafka.output import OutputAbortedError
from railgun.messaging.transport import TopicPartition
from railgun.registry.input_topics import InputTopic
from railgun.telemetry.recording import StreamRecord

WAIT_S = 20.0
TOPICS, WHERE = {"t": InputTopic("t", "id", 7)}, TopicPartition("t", 0)
ROUTE = Route("s", 1, (("t", "id"),), StreamOutput("out", "dead", ReplyKey.ID, (), discards_late=False), 0)


class Watched(threading.Condition):
    """Says whether somebody waited."""

    def __init__(self) -> None:
        super().__init__()
        self.is_waited_for = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.is_waited_for.set()
        return super().wait(timeout)


class HeldOutput:
    """Takes what is written."""

    commits = True
    is_stuck = False

    def __init__(self) -> None:
        self.written = threading.Event()

    def write(self, select: Callable[[], object], reading: object) -> None:
        select()
        self.written.set()

    def close(self) -> None:
        """Nothing is open."""


class AbortedOutput(HeldOutput):
    """Takes nothing the first times."""

    def __init__(self, reasons: list[OutputAbortedError]) -> None:
        super().__init__()
        self.reasons = reasons

    def write(self, select: Callable[[], object], reading: object) -> None:
        if self.reasons:
            raise self.reasons.pop(0)
        super().write(select, reading)


class StuckOutput(HeldOutput):
    """Does not come back before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    def write(self, select: Callable[[], object], reading: object) -> None:
        self.is_stuck = True
        super().write(select, reading)
        self.let_go.wait()


def means_of(exchange: Any) -> Any:
    """What a stream's way is made with, as far as answers need it."""
    return SimpleNamespace(exchange=exchange)


def test_what_may_not_be_written_for_now_is_waited_with() -> None:
    """It took a processor meanwhile, from whatever keeps the reading thread."""
    windows, changed, output = Windows(TOPICS, 10, len), Watched(), HeldOutput()
    windows.changed = changed
    windows.assigned([WHERE])
    window = windows.of(WHERE)
    assert window is not None
    nothing: Any = ()
    windows.add(Run(window, 1, 0, 1, nothing, [], [], 0.0, values=[]))
    windows.alive_s = monotonic() - 3600
    reading: Any = SimpleNamespace(session_s=1800.0)
    answering = AnswerThread(ROUTE, means_of(None), windows, reading, output, StreamRecord(), str)
    try:
        assert changed.is_waited_for.wait(WAIT_S)
        assert not output.written.is_set()
        windows.alive_s = monotonic()
        assert output.written.wait(WAIT_S)
    finally:
        answering.close()
    assert not window.runs


def test_what_holds_up_answers_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    windows = Windows(TOPICS, 10, len)
    windows.assigned([WHERE])
    window = windows.of(WHERE)
    assert window is not None
    nothing: Any = ()
    output = AbortedOutput(
        [
            OutputAbortedError("no member"),
            OutputAbortedError("no member"),
            OutputAbortedError("another generation after 1 ms", 22),
            OutputAbortedError("another generation after 2 ms", 22),
        ]
    )
    reading: Any = SimpleNamespace(session_s=1800.0)
    with caplog.at_level(logging.WARNING, "railgun.frontend"):
        answering = AnswerThread(ROUTE, means_of(None), windows, reading, output, StreamRecord(), str)
        try:
            windows.add(Run(window, 1, 0, 1, nothing, [], [], 0.0, values=[]))
            assert output.written.wait(WAIT_S)
        finally:
            answering.close()
    assert [each.getMessage().rpartition(": ")[2] for each in caplog.records] == [
        "no member",
        "another generation after 1 ms",
    ]


def test_an_output_that_does_not_come_back_is_left_behind() -> None:
    windows, output = Windows(TOPICS, 10, len), StuckOutput()
    windows.assigned([WHERE])
    window = windows.of(WHERE)
    assert window is not None
    nothing: Any = ()
    reading: Any = SimpleNamespace(session_s=1800.0)
    answering = AnswerThread(ROUTE, means_of(None), windows, reading, output, StreamRecord(), str)
    try:
        answering.check()
        windows.add(Run(window, 1, 0, 1, nothing, [], [], 0.0, values=[]))
        assert output.written.wait(WAIT_S)
        with pytest.raises(TransportUnavailableError):
            answering.check()
        answering.close()
        assert not answering.is_over
    finally:
        output.let_go.set()
    output.is_stuck = False
    answering.close()
    assert answering.is_over
