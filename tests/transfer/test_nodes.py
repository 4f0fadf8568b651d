"""Addresses of other nodes, from the topic in which they say them."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from railgun.cluster.records import NodeRecord, RecordError, encode_statement
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition
from railgun.registry.cluster_topics import make_topics
from railgun.registry.topics import Topics
from railgun.transfer import nodes
from railgun.transfer.donor import DonorAddress, DonorBusyError
from railgun.transfer.nodes import NodeAddresses, follow_nodes
from railgun.wire.records import Records
from tests.broker.own_topics import own_prefix
from tests.unit.local_units import awaited


def _record(name: str, url: str, key: str) -> NodeRecord:
    return NodeRecord(
        name=name, folder="f", incarnation=1, host="h", units=1, release="1", transfer=url, transfer_key=key
    )


def test_the_newest_record_of_a_node_counts() -> None:
    known = NodeAddresses()
    known.are_read()
    for key in ("00", "01"):
        known.take(0, encode_statement(_record("a", "http://a:1", key)))
    # A node of an earlier release, and what is said of nodes.
    known.take(
        1, b'{"kind":"node","name":"b","folder":"f","incarnation":1,"host":"h","units":1,"release":"1"}'
    )
    known.take(2, b'{"kind":"drain","node":"a","asked_ms":1,"is_on":true}')
    assert known.of("a") == DonorAddress("http://a:1", "01")
    assert known.of("b") == DonorAddress("", "")
    assert known.of("c") is None
    with pytest.raises(RecordError):
        known.take(3, b"{}")


def test_it_is_known_which_nodes_serve_nothing() -> None:
    known = NodeAddresses()
    assert not known.serve_none(["a"])
    known.take(0, encode_statement(_record("a", "http://a:1", "00")))
    known.take(0, encode_statement(_record("b", "", "")))
    known.are_read()
    assert known.serve_none(["b", "c"])
    assert not known.serve_none(["b", "a"])


def test_before_the_topic_was_read_a_donor_is_asked_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "_FIRST_S", 0.01)
    with pytest.raises(DonorBusyError):
        NodeAddresses().of("a")


def test_a_question_waits_until_the_topic_was_read_once() -> None:
    known = NodeAddresses()
    with ThreadPoolExecutor(1) as asking:
        answer = asking.submit(known.of, "a")
        with pytest.raises(TimeoutError):
            answer.result(0.05)
        known.take(0, encode_statement(_record("a", "http://a:1", "00")))
        known.are_read()
        assert answer.result(10) == DonorAddress("http://a:1", "00")


def test_the_topic_is_followed(kafka: str) -> None:
    settings, topics = KafkaSettings(kafka), Topics(own_prefix("x"))
    known, stopped = NodeAddresses(), threading.Event()
    with KafkaTransport(settings) as transport:
        make_topics(transport, topics)
        following = threading.Thread(target=follow_nodes, args=[known, topics.nodes, settings, stopped])
        following.start()
        try:
            for key in ("00", "01"):
                record = _record("a", "http://a:1", key)
                where = TopicPartition(topics.nodes, 0)
                transport.submit(
                    [Entry(where, Records.of([encode_statement(record)]), [record.key])]
                ).result()
                awaited(lambda expected=key: known.of("a") == DonorAddress("http://a:1", expected))
        finally:
            stopped.set()
            following.join()
