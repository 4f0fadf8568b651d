"""What a long start says: at once what it does, then now and then how far it is."""

import logging
import time
from pathlib import Path

import pytest

from railgun.engine.engine import Engine
from railgun.host.start import LoggedStartProgress

DEFINITIONS = """
[streams.s]
id = "id"
partitioners = ["k"]
partitions = 2
[streams.s.fields]
id = "long"
k = "long"
"""


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, int]]:
    return [record.fields for record in caplog.records]  # type: ignore[attr-defined]


def test_how_far_a_start_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "railgun.engine")
    engine = Engine(tmp_path / "data", durability="os", start=LoggedStartProgress(time.monotonic))
    engine.apply(DEFINITIONS)
    for number in range(10):
        engine.score("s", {"id": number, "k": number})
    engine.close(checkpoint=False)
    assert not caplog.records, "there was nothing to open"
    # A clock that goes on by a minute whenever it is looked at: everything is said.
    clock_s = iter(range(0, 10**6, 60))
    Engine(tmp_path / "data", durability="os", start=LoggedStartProgress(lambda: next(clock_s))).close()
    first, *_, last = told(caplog)
    assert first == {"tasks": 2}
    assert (last["tasks"], last["restored"]) == (2, 2)
    assert last["records"] == last["of"] >= 10


def test_a_short_start_says_one_thing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "railgun.engine")
    start = LoggedStartProgress(lambda: 7.0)
    start.opening(3)
    start.expect(5)
    start.note(5)
    assert told(caplog) == [{"tasks": 3}]
