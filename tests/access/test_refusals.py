"""Lines about refusals: some a second, and how many there were besides."""

import logging
from collections.abc import Callable

import pytest

from railgun.access.guard import AccessError
from railgun.access.refusal_collector import RefusalCollector
from railgun.access.refusals import LINES_PER_S, PERIOD_S, RefusalLog
from railgun.logs.setup import fields


class Log:
    """A log of refusals whose time the test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._later: list[tuple[float, Callable[[], None]]] = []
        self.log = RefusalLog(lambda: self.now_s, self._call_later)

    def _call_later(self, after_s: float, function: Callable[[], None]) -> None:
        self._later.append((self.now_s + after_s, function))

    def refuse(self, times: int) -> None:
        for _ in range(times):
            self.log.note("no token", fields(client="192.0.2.7"))

    def refuse_request(self, status: int, *, is_logged: bool) -> None:
        error = AccessError(status, "no token", who="app")
        self.log.note_request(error, "GET", b"/v1/a%1B\xff", "192.0.2.7", is_logged=is_logged)

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        due = [each for each in self._later if each[0] <= self.now_s]
        self._later = [each for each in self._later if each not in due]
        for _, function in due:
            function()


def test_refusals_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    log = Log()
    for times in (1_000, 0, LINES_PER_S, 0, LINES_PER_S + 1):
        log.refuse(times)
        log.pass_time(PERIOD_S)
    said = [each.getMessage() for each in caplog.records]
    line = "refused: no token"
    assert said == [
        *[line] * LINES_PER_S,
        f"refused: {1_000 - LINES_PER_S} more within 1 s, which have no lines of their own",
        *[line] * (2 * LINES_PER_S),
        "refused: 1 more within 1 s, which have no lines of their own",
    ]
    assert {each.levelno for each in caplog.records} == {logging.WARNING}


def test_where_no_thread_can_be_had_the_next_one_tries_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()

    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(log.log, "_later", no_thread)
        log.refuse(LINES_PER_S + 2)
    log.refuse(1)
    log.pass_time(PERIOD_S)
    assert caplog.records[-1].getMessage().startswith("refused: 3 more ")


def test_how_many_were_left_out_is_said_though_no_other_comes(caplog: pytest.LogCaptureFixture) -> None:
    log = Log()
    log.refuse(LINES_PER_S + 5)
    log.pass_time(PERIOD_S / 2)
    log.refuse(5)
    log.pass_time(PERIOD_S / 2)
    assert caplog.records[-1].getMessage().startswith("refused: 10 more ")
    assert len(caplog.records) == LINES_PER_S + 1


def test_requests_are_counted_whether_or_not_they_have_lines(caplog: pytest.LogCaptureFixture) -> None:
    log = Log()
    log.refuse_request(403, is_logged=False)
    for _ in range(LINES_PER_S + 5):
        log.refuse_request(401, is_logged=True)
    figures = {"request": "GET /v1/a%1B\\xff", "status": 401, "who": "app", "client": "192.0.2.7"}
    assert [each.__dict__["fields"] for each in caplog.records] == [figures] * LINES_PER_S
    (family,) = RefusalCollector(log.log).collect()
    found = {each.labels["status"]: each.value for each in family.samples}
    assert found == {"401": LINES_PER_S + 5, "403": 1, "421": 0}
