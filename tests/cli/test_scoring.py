"""`railgun score`: lines out as they come in, answers in order, refusals counted, memory bounded."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import railgun.cli.score as score_module
from railgun.cli.failures import UsageError
from railgun.cli.score import Outcome, score
from railgun.client.errors import ConnectionLostError


class Echo:
    """Answers each line with itself; a line that holds `bad` with a problem."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def score_lines(self, stream: str, lines: bytes) -> bytes:
        assert stream == "s"
        assert lines.endswith(b"\n")
        self.sent.append(lines)
        return b"".join(self._answer(line) for line in lines.splitlines())

    def _answer(self, line: bytes) -> bytes:
        problem = {
            "title": "no",
            "status": 422,
            "detail": "bad one",
            "errors": [{"loc": ["x"], "msg": "why"}],
        }
        body: dict[str, Any] = (
            problem if b"bad" in line else {"id": line.decode("latin-1"), "metrics": {"status": 3}}
        )
        return json.dumps(body).encode() + b"\n"


class Pipe:
    """Gives what arrived, piece by piece."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]

    def read(self, size: int, /) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def scored(pieces: list[bytes]) -> tuple[Echo, Outcome, list[bytes]]:
    server, out = Echo(), io.BytesIO()
    outcome = score(server, "s", Pipe(pieces), out)
    return server, outcome, out.getvalue().splitlines()


@given(st.lists(st.sampled_from([b"a", b"bad", b" ", b"\n", b"\n\n", b"\r\n", b"xyz\n"]), max_size=30))
def test_however_it_arrives_each_event_is_answered_once_in_order(pieces: list[bytes]) -> None:
    # The first line is a JSON object: the input holds events.
    pieces = [b"{}\n", *pieces]
    whole = b"".join(pieces).split(b"\n")
    events = [(number, line) for number, line in enumerate(whole, 1) if line.strip()]
    server, outcome, answers = scored(pieces)
    assert [line for sent in server.sent for line in sent.split(b"\n")[:-1]] == [line for _, line in events]
    assert len(answers) == outcome.events == len(events)
    bad = [number for number, line in events if b"bad" in line]
    assert (outcome.refused, outcome.first_line) == (len(bad), bad[0] if bad else 0)
    if bad:
        assert outcome.first_why == "bad one; x: why"


def test_what_has_arrived_goes_out_at_once() -> None:
    server, _, _ = scored([b'{"a":1}\n{"a"', b":2}\n", b'{"a":3}'])
    assert server.sent == [b'{"a":1}\n', b'{"a":2}\n', b'{"a":3}\n']


@pytest.mark.parametrize(
    ("pieces", "sent"),
    [
        ([b'[\n  {\n    "a": 1\n  }\n]\n'], []),
        ([b"PAR1\xff\n\n", b"\x00\n", b'"a"\n{}\n'], [b"PAR1\xff\n", b"\x00\n"]),
    ],
)
def test_an_input_without_events_is_refused_as_a_whole(pieces: list[bytes], sent: list[bytes]) -> None:
    server = Echo()
    with pytest.raises(UsageError, match=r"^line \d is no JSON object, and none before it is: .*NDJSON"):
        score(server, "s", Pipe(pieces), io.BytesIO())
    assert server.sent == sent


def test_lines_that_are_no_events_among_others_are_refused_one_by_one() -> None:
    for pieces in ([b"a\nb\n{}\nc\nd\ne\n"], [b"a\n", b"{}\n", b"b\n", b"c\n", b"d\n", b"e\n"]):
        assert scored(pieces)[1].events == 6
    assert scored([b"a\nb"])[1].events == 2


def test_a_line_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_module, "LINE_LIMIT_BYTES", 10)
    with pytest.raises(UsageError, match="a line of more than 10 bytes after line 1"):
        scored([b"a\n", b"1234567", b"89012"])


def test_after_a_lost_connection_it_says_which_lines_are_in_doubt() -> None:
    class Losing(Echo):
        def score_lines(self, stream: str, lines: bytes) -> bytes:
            if self.sent:
                raise ConnectionLostError("http://h: lost")
            return super().score_lines(stream, lines)

    with pytest.raises(ConnectionLostError, match="http://h: lost; lines 3 to 4 may have been taken"):
        score(Losing(), "s", Pipe([b"{}\n\n", b"b\nc\n"]), io.BytesIO())


def test_an_answer_per_event_is_asked_for() -> None:
    class Short(Echo):
        def score_lines(self, stream: str, lines: bytes) -> bytes:
            return b"{}\n"

    with pytest.raises(UsageError, match="2 events got 1 answers"):
        score(Short(), "s", Pipe([b"a\nb\n"]), io.BytesIO())
