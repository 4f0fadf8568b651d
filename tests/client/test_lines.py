"""Lines against a server that ends its answers anywhere: one with an id counts once, none without is sent twice."""

import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from railgun.client import calls
from railgun.client.errors import ClientError, ConnectionLostError, ProblemError
from railgun.client.replies import line_answers
from railgun.client.steps import Outcome, Request
from tests.client.played import URL, Played, answer, lost, refused, session
from tests.counts import examples

TOO_MUCH = {"title": "Too Many Requests", "status": 429, "detail": "too much at once"}
STOPPED = {"title": "Service Unavailable", "status": 503, "detail": "the server stops"}


@dataclass(frozen=True)
class Attempt:
    """What a server does with a request: it takes the first lines, answers some of those, and goes.

    in_place: what stands in place of some answers: of events that were not taken (429), or that may be (503).
    """

    takes: int
    answers: int
    cut_bytes: int
    ends: str
    in_place: tuple[int, ...] = ()


@dataclass
class Server:
    """Counts events as the engine does. taken: how often each was taken; sent: how often it came."""

    has_ids: bool
    attempts: list[Attempt]
    taken: dict[int, int] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=dict)

    def __call__(self, request: Request) -> Outcome:
        if request.method == "GET":
            return answer(json.dumps({"id": "tx" if self.has_ids else None, "dedup_events": 100}).encode())
        events = [json.loads(line)["tx"] for line in request.content.splitlines()]
        if not self.attempts:
            return answer(b"".join(map(self._take, events)))
        attempt = self.attempts.pop(0)
        if attempt.ends == "refused":
            return refused()
        if attempt.ends == "full":
            return answer(json.dumps(TOO_MUCH).encode(), 429, "1")
        lines = []
        for place, event in enumerate(events[: attempt.takes]):
            kind = attempt.in_place[place % len(attempt.in_place)] if attempt.in_place else 0
            if kind == 429:
                self.sent[event] = self.sent.get(event, 0)
                lines.append(json.dumps(TOO_MUCH).encode() + b"\n")
                continue
            reply = self._take(event)
            lines.append(json.dumps(STOPPED).encode() + b"\n" if kind == 503 else reply)
        for event in events[attempt.takes :]:
            self.sent[event] = self.sent.get(event, 0) + 1
        if attempt.ends == "short":
            return answer(b"".join(lines))
        content = b"".join(lines[: attempt.answers])
        return lost(content[: max(0, len(content) - attempt.cut_bytes)])

    def _take(self, event: int) -> bytes:
        """A line that may count: without ids it counts each time that it comes."""
        self.sent[event] = self.sent.get(event, 0) + 1
        if not self.has_ids or event not in self.taken:
            self.taken[event] = self.taken.get(event, 0) + 1
        # The id could hold what a problem's key looks like.
        reply = {"id": f'"status"{event}', "time": 1, "metrics": {"status": event}}
        return json.dumps(reply).encode() + b"\n"


ATTEMPTS = st.builds(
    Attempt,
    takes=st.integers(0, 8),
    answers=st.integers(0, 8),
    cut_bytes=st.integers(0, 200),
    ends=st.sampled_from(["lost", "lost", "short", "refused", "full"]),
    in_place=st.lists(st.sampled_from([0, 0, 429, 503]), max_size=3).map(tuple),
)


def lines_of(n: int) -> bytes:
    return b"".join(json.dumps({"tx": each}).encode() + b"\n" for each in range(n))


def told(answers: bytes) -> list[int]:
    """Which events a client says are answered; of a problem its status, below zero."""
    found = []
    for each in line_answers(answers, URL):
        found.append(-each.status if isinstance(each, ProblemError) else each["metrics"]["status"])
    return found


@settings(max_examples=examples(200, 20_000))
@given(n=st.integers(1, 8), attempts=st.lists(ATTEMPTS, max_size=4))
def test_with_ids_each_event_counts_once_and_has_its_answer(n: int, attempts: list[Attempt]) -> None:
    server = Server(True, attempts)
    answers = Played().run(calls.score_lines(session(), "s", lines_of(n)), server)
    assert told(answers) == list(range(n))
    assert server.taken == dict.fromkeys(range(n), 1)


@settings(max_examples=examples(200, 20_000))
@given(n=st.integers(1, 8), attempts=st.lists(ATTEMPTS, max_size=4))
def test_without_ids_no_event_that_may_have_counted_is_sent_again(n: int, attempts: list[Attempt]) -> None:
    server = Server(False, attempts)
    is_whole = False
    try:
        found = told(Played().run(calls.score_lines(session(), "s", lines_of(n)), server))
        is_whole = True
    except ConnectionLostError as error:
        found = told(error.answered)
    assert is_whole == (len(found) == n)
    assert all(times <= 1 for times in server.sent.values())
    for place, each in enumerate(found):
        if each >= 0:
            assert (each, server.taken[place]) == (place, 1)
        elif each == -429:
            assert place not in server.taken


def test_a_problem_that_may_pass_is_the_answer_where_the_line_may_not_be_sent_again() -> None:
    server = Server(False, [Attempt(2, 2, 0, "short", (0, 503))])
    first, second = line_answers(Played().run(calls.score_lines(session(), "s", lines_of(2)), server), URL)
    assert not isinstance(first, ProblemError)
    assert isinstance(second, ProblemError)
    assert (second.status, second.may_have_counted) == (503, True)


def test_an_error_amid_lines_has_the_answers_before_it() -> None:
    server = Server(True, [Attempt(3, 2, 0, "lost")])
    outcomes = iter([server, server, lambda _: answer(b'{"detail": "who?"}', 401)])
    with pytest.raises(ClientError) as raised:
        Played().run(calls.score_lines(session(), "s", lines_of(3)), lambda each: next(outcomes)(each))
    assert raised.value.may_have_counted
    assert told(raised.value.answered) == [0, 1]


def test_blank_lines_are_no_events() -> None:
    played = Played()
    assert played.run(calls.score_lines(session(), "s", b"\n \r\n"), []) == b""
    server = Server(True, [])
    assert told(played.run(calls.score_lines(session(), "s", b"\n" + lines_of(1) + b" \n"), server)) == [0]


def test_more_answers_than_events_are_no_answers() -> None:
    with pytest.raises(ClientError, match="1 events got 2 answers; is this a Railgun server"):
        Played().run(calls.score_lines(session(), "s", lines_of(1)), [answer(b"{}\n{}\n")])
