"""The end-to-end bench: events go round by topics, every one is in the figures, and a silence shows in them."""

from pathlib import Path

import psutil
import pytest

from bench.e2e import CASES
from bench.e2e_run import Cluster
from bench.load.order import Order
from bench.load.schedule import Schedule
from bench.service import Service
from bench.unit_cases import THROUGHPUT
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.topics import Topics
from tests.broker.own_topics import own_prefix
from tests.unit.local_units import quick_settings


@pytest.mark.timeout(400)
def test_a_cluster_under_load(kafka: str, tmp_path: Path) -> None:
    workload, prefix = THROUGHPUT["payments_1x3"], own_prefix("b")
    topics = Topics(prefix)
    with KafkaTransport(quick_settings(kafka)) as log:
        for topic in (topics.input("payments"), topics.output("payments")):
            log.create_topic(topic, 1)
    with Service(tmp_path, workload.definitions, "os", kafka, prefix) as service:
        service.start()
        cluster = Cluster(service, kafka, f"{prefix}.payments", workload.payments)
        assert cluster.bulk(3_000) > 0
        steady = cluster.at(200, 1.0)
        assert (steady.good, len(steady.latencies)) == (200, 200)
        assert cluster.at(50, 0.5, by_topic=False).good == 25
        assert psutil.pid_exists(service.unit_pid)
        assert cluster.normal_after_burst_s(50, 400, 0.5, 2.0) <= 2.0
        assert cluster.silent_after_kill_s(100, 2.0) > 0.5


def test_events_go_to_a_topic_one_by_one() -> None:
    with pytest.raises(ValueError, match="one by one"):
        Order("127.0.0.1", 1, "t", Schedule.burst(1), events_each=2, ndjson=True, is_topic=True)
    assert set(CASES) == {"unit_topic", "in_out", "bulk", "killed", "backlog"}
