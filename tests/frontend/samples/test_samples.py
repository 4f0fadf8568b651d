"""A defect of what keeps events for the console ends nothing else, and is logged once."""

from collections.abc import Mapping
from typing import Any

import pytest

from frontend.access.masks import UNMASKED, Masks
from frontend.samples.ring import Sample
from frontend.samples.samples import Samples
from railgun.catalog.catalog import StreamEntry
from railgun.config.settings import ConsoleSettings
from railgun.messaging.transport import TopicPartition


def test_a_defect_is_logged_once_for_each_stream_and_text(caplog: pytest.LogCaptureFixture) -> None:
    text = "first"

    def entries() -> Mapping[str, StreamEntry]:
        raise ValueError(text)

    samples = Samples(ConsoleSettings(samples=5), entries, Masks())
    nothing: Any = None
    sample = Sample(1, b"", 200, b"", None, 0, UNMASKED, 0)
    for _ in range(3):
        samples.take("s", [b"{}"], [None])
        assert samples.of_topic("s", 1, [], nothing, TopicPartition("t", 0), []) == []
        samples.put("s", 1, [sample])
    samples.take("other", [b"{}"], [None])
    text = "second"
    samples.put("s", 1, [sample])
    assert [each.getMessage() for each in caplog.records] == [
        f"a defect: events of {name} are not kept for the console" for name in ("s", "other", "s")
    ]
    for number in range(200):
        text = str(number)
        samples.put("s", 1, [sample])
    assert len(caplog.records) == 100
