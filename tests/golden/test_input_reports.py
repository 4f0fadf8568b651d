"""How far front-ends say that input topics are read: those of later releases read it, and of earlier ones."""

import msgspec

from frontend.topics.input_reports import InputReport
from tests.golden.promises import expected, held

WHOLE = InputReport(
    stream="payments",
    created=7,
    topic="prod.payments.v2",
    id="AAAAAAAAAAAAAAAAAAAAAQ",
    partition=3,
    position=1_234,
    time_ms=1_700_000_000_000,
    behind=True,
    asks=True,
)
LEAST = InputReport(stream="payments", created=7, topic="t", id="i", partition=0)


def test_reports() -> None:
    found = {"whole": WHOLE, "least": LEAST}
    held(
        "input_reports.json",
        {
            name: {each.key.decode(): msgspec.json.decode(msgspec.json.encode(each))}
            for name, each in found.items()
        },
    )


def test_reports_are_read_back() -> None:
    for name, each in (("whole", WHOLE), ("least", LEAST)):
        (body,) = expected("input_reports.json")[name].values()
        assert msgspec.convert({**body, "of_a_later_release": 1}, InputReport) == each
