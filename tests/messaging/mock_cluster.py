"""The cluster that librdkafka brings along for tests of clients: a broker that can leave itself out of what it says."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka

_PRODUCER = 0
_TEXT_BYTES = 512


class MockCluster:
    """One broker, number 1, with one topic. address: where it is at first."""

    def __init__(self, topic: str) -> None:
        self._library = ctypes.CDLL(str(_library()))
        settings = ctypes.c_void_p(self._call("rd_kafka_conf_new", ctypes.c_void_p)())
        said, room = ctypes.create_string_buffer(_TEXT_BYTES), ctypes.c_size_t(_TEXT_BYTES)
        self._call("rd_kafka_conf_set", ctypes.c_int)(settings, b"log_level", b"0", said, room)
        host = self._call("rd_kafka_new", ctypes.c_void_p)(_PRODUCER, settings, said, room)
        self._host = ctypes.c_void_p(host)
        cluster = self._call("rd_kafka_mock_cluster_new", ctypes.c_void_p)(self._host, 1)
        self._cluster = ctypes.c_void_p(cluster)
        self._ask("topic_create", topic.encode(), 1, 1)
        address = self._call("rd_kafka_mock_cluster_bootstraps", ctypes.c_char_p)(self._cluster)
        self.address = str(address.decode())

    def hide(self) -> None:
        """Broker 1 names itself no more, and goes on answering where it is."""
        self._ask("broker_remove_from_metadata", 1)

    def add(self, number: int) -> None:
        """One more broker, which all name."""
        self._ask("broker_add", number)

    def close(self) -> None:
        self._call("rd_kafka_mock_cluster_destroy", None)(self._cluster)
        self._call("rd_kafka_destroy", None)(self._host)

    def _ask(self, what: str, *arguments: Any) -> None:
        assert self._call(f"rd_kafka_mock_{what}", ctypes.c_int)(self._cluster, *arguments) == 0

    def _call(self, name: str, result: Any) -> Callable[..., Any]:
        found = self._library[name]
        found.restype = result
        return found


@contextmanager
def mock_cluster(topic: str) -> Iterator[MockCluster]:
    """One that is there as long as the block."""
    cluster = MockCluster(topic)
    try:
        yield cluster
    finally:
        cluster.close()


def _library() -> Path:
    beside = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    [found] = beside.glob("librdkafka*")
    return found
