"""The reply topics of front-ends that got no reply for a day are deleted by the node that leads, and no others."""

from collections.abc import Mapping

import pytest

from railgun.cluster.silence import REPLIES_UNUSED_S
from railgun.messaging.errors import TopicMissingError, TransportUnavailableError
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition
from railgun.node.leader.reply_topics import ReplyTopics
from railgun.registry.topics import Topics
from tests.broker.own_topics import own_prefix
from tests.unit.local_units import awaited, quick_settings

HOUR_S = 3_600.0
TOPICS = Topics("p")
DEAD, USED = TOPICS.replies(1), TOPICS.replies(2**31 - 1)


class Broker:
    """Has some topics, each with its end."""

    def __init__(self) -> None:
        self.ends = {
            DEAD: 7, USED: 0, "p.catalog": 3, "p.replies.by.card": 3, "p.replies.all": 3, "p.s.replies.1": 3,
            "q.replies.1": 3, "p.replies.": 3, "p.replies.x.1": 3,
        }  # fmt: skip
        self.is_away = self.is_slow = self.is_gone_already = False

    def topics(self) -> list[str]:
        if self.is_away:
            raise TransportUnavailableError("p", "no answer", "Check the broker")
        return list(self.ends)

    def bounds_of(self, wheres: list[TopicPartition]) -> Mapping[TopicPartition, tuple[int, int]]:
        return {} if self.is_slow else {where: (0, self.ends[where.topic]) for where in wheres}

    def delete_topic(self, topic: str) -> None:
        if self.is_gone_already:
            raise TopicMissingError(topic)
        del self.ends[topic]


class Leader:
    def __init__(self) -> None:
        self.broker, self.now_s, self.leads = Broker(), 0.0, True
        self.replies = ReplyTopics(self.broker, TOPICS, lambda: self.leads, lambda: self.now_s)
        self.before = set(self.broker.ends)

    def let_pass(self, hours: float) -> set[str]:
        """Look four times an hour. `USED` gets a reply each time. Return the topics that were deleted."""
        for _ in range(round(4 * hours)):
            self.now_s += HOUR_S / 4
            self.broker.ends[USED] += 1
            self.replies.look()
        return self.before - set(self.broker.ends)


def test_a_topic_goes_after_a_day_without_a_reply() -> None:
    leader = Leader()
    assert leader.let_pass(REPLIES_UNUSED_S / HOUR_S) == set()
    assert leader.let_pass(1) == {DEAD}


def test_a_reply_begins_the_day_anew() -> None:
    leader = Leader()
    leader.let_pass(23)
    leader.broker.ends[DEAD] += 1
    assert leader.let_pass(23) == set()
    assert leader.let_pass(2) == {DEAD}


def test_only_the_node_that_leads_deletes() -> None:
    leader = Leader()
    leader.leads = False
    assert leader.let_pass(48) == set()
    leader.leads = True
    assert leader.let_pass(1) == {DEAD}


def test_a_lead_that_changes_often_keeps_no_topic() -> None:
    leader = Leader()
    for leader.leads in (True, False, True):
        assert leader.let_pass(8) == set()
    assert leader.let_pass(1) == {DEAD}


def test_a_topic_of_which_the_broker_does_not_say_is_left_and_one_that_is_gone_is_no_error() -> None:
    leader = Leader()
    leader.let_pass(20)
    leader.broker.is_slow = True
    assert leader.let_pass(20) == set()
    leader.broker.is_slow = False
    assert leader.let_pass(1) == set()
    leader.broker.is_gone_already = True
    assert leader.let_pass(25) == set()
    leader.broker.is_away = True
    with pytest.raises(TransportUnavailableError):
        leader.replies.look()


def test_on_a_real_broker(kafka: str) -> None:
    topics, now_s = Topics(own_prefix("r")), [0.0]
    with KafkaTransport(quick_settings(kafka)) as transport:
        for number in (1, 2):
            transport.create_topic(topics.replies(number), 1)
        replies = ReplyTopics(transport, topics, lambda: True, lambda: now_s[0])
        awaited(lambda: {topics.replies(1), topics.replies(2)} <= set(transport.topics()))
        replies.look()
        transport.append(topics.replies(2), 0, [b"a reply"])
        now_s[0] = REPLIES_UNUSED_S
        replies.look()
        awaited(lambda: topics.replies(1) not in transport.topics())
        assert topics.replies(2) in transport.topics()
