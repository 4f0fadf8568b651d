"""Records that cannot be read, made from good ones, and a log that has them in between."""

import random
from typing import Any

import msgspec

from railgun.wire.msgpack import Status
from tests.oracle.steps import Step
from tests.strategies.case import Case
from tests.task.player import LogWriter

_encode = msgspec.msgpack.Encoder().encode
_EVENT, _MARK = b"\x01", b"\xa4zzzz"
TWO_63 = 2**63


def poisons(version: int, good: bytes, fields: int) -> list[tuple[Status, bytes]]:
    """One of each kind, with the reason that must be given."""

    def event(event_id: Any = "p", time: Any = 0, values: Any = None, count: int = fields) -> bytes:
        head = (version, event_id, time, -1, 0, 0, None)
        return _EVENT + _encode((*head, *([None] * count if values is None else values)))

    nested = b"\x91" * 50_000 + b"\xc0"
    return [
        (Status.UNKNOWN_RECORD, b"\x07" + good[1:]),
        (Status.TRUNCATED, b"\x01"),
        (Status.TRUNCATED, good[: len(good) // 2]),
        (Status.TRUNCATED, good[:-1]),
        (Status.TRAILING_BYTES, good + b"\xc0"),
        (Status.BAD_UTF8, event(event_id="zzzz").replace(_MARK, b"\xa4\xff\xfe\xc0\x80")),
        (Status.BAD_UTF8, event(event_id="zzzz").replace(_MARK, b"\xa4\xed\xa0\x80a")),
        (Status.OUT_OF_RANGE, event(time=TWO_63)),
        (Status.WRONG_TYPE, event(time="now")),
        (Status.WRONG_TYPE, event(time=None)),
        (Status.WRONG_TYPE, event(values=[{"a": 1}] * fields)),
        (Status.WRONG_TYPE, event()[:-fields] + nested),
        (Status.WRONG_TYPE, _EVENT + _encode({"version": version})),
        (Status.TOO_LONG, event(event_id="x" * (1 << 20))),
        (Status.WRONG_COUNT, event(count=fields + 1)),
        (Status.WRONG_COUNT, _EVENT + _encode((version, "p", 0))),
    ]


class PoisonedWriter(LogWriter):
    """Writes poisons between the records; `reasons`: by offset, why each must be passed over."""

    def __init__(self, case: Case, seed: int) -> None:
        self.reasons: dict[int, Status] = {}
        self._random = random.Random(seed)
        super().__init__(case)

    def write(self, index: int, step: Step) -> None:
        before = len(self.records)
        super().write(index, step)
        if len(self.records) == before or self.records[-1][0] is None or self._random.random() < 0.5:
            return
        made = poisons(self.version, self.records[-1][1], len(self.stream.fields))
        for status, record in self._random.sample(made, self._random.randint(1, 3)):
            self.reasons[len(self.records)] = status
            self.records.append((None, record))
