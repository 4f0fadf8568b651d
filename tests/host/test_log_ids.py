"""The ids of logs' topics: one request for many tasks, and when a state does not fit another topic."""

from collections.abc import Collection, Mapping
from typing import cast

import pytest

from railgun.host.log_ids import LogIds, check_same
from railgun.messaging.errors import TopicMissingError
from railgun.messaging.transport import Transport
from railgun.task.errors import LogReplacedError


class Broker:
    """ids: of its topics.  asked: what it was asked for."""

    def __init__(self) -> None:
        self.ids = {"a": "first", "b": ""}
        self.asked: list[Collection[str]] = []

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        self.asked.append(topics)
        return {topic: self.ids[topic] for topic in topics if topic in self.ids}


def test_tasks_that_open_together_share_an_answer() -> None:
    broker, now_s = Broker(), [0.0]
    ids = LogIds(cast(Transport, broker), lambda: now_s[0])
    assert [ids.of("a") for _ in range(300)] == ["first"] * 300
    assert ids.of("b") == ""
    assert broker.asked == [["a"], ["b"]]
    broker.ids["a"] = "second"
    now_s[0] = 1.0
    assert ids.of("a") == "second"
    del broker.ids["a"]
    assert ids.of("a") == "second"
    now_s[0] = 2.0
    with pytest.raises(TopicMissingError):
        ids.of("a")
    # That is no answer for later.
    broker.ids["a"] = "third"
    assert ids.of("a") == "third"


def test_an_answer_of_a_moment_ago_is_passed_over_by_those_that_must_know() -> None:
    broker = Broker()
    ids = LogIds(cast(Transport, broker), lambda: 0.0)
    assert ids.of("a") == "first"
    broker.ids["a"] = "second"
    assert [ids.of("a"), ids.ask("a"), ids.of("a")] == ["first", "second", "second"]


@pytest.mark.parametrize(
    ("position", "topic_id", "present", "fits"),
    [
        (5, "first", "first", True),
        (5, "first", "second", False),
        (1, "first", "second", False),
        (0, "first", "second", True),
        (5, "", "second", True),
        (5, "first", "", True),
    ],
)
def test_a_state_fits_the_log_that_it_was_made_of(
    position: int, topic_id: str, present: str, *, fits: bool
) -> None:
    if fits:
        check_same("s/card/0", position, topic_id, present)
        return
    with pytest.raises(
        LogReplacedError, match=r"s/card/0: .*id first.*id second.*deleted and made anew"
    ) as raised:
        check_same("s/card/0", position, topic_id, present)
    assert raised.value.topic_id == topic_id
