"""A coordinator that answers after the time limit of a request, as it is back by then: nothing ends.

librdkafka (2.16) would abort the process, and with it these tests.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from railgun.messaging.errors import TransportError
from railgun.messaging.kafka import membership
from railgun.messaging.kafka.admin import KafkaAdmin
from railgun.messaging.kafka.membership import GroupMembers, Members
from railgun.messaging.kafka.transport import KafkaTransport
from tests.broker.faulty_network import FaultyNetwork, NetworkedBroker
from tests.broker.quick_broker import unheard
from tests.unit.local_units import awaited, quick_settings

# A client that was not closed has reached its broker again by then: its pauses are shorter.
_BACK_S = 2.0


@pytest.fixture
def network(tmp_path: Path) -> Iterator[FaultyNetwork]:
    """A network that leads to a broker, whose coordinator of groups has answered."""
    network = FaultyNetwork(0, 0)
    broker = NetworkedBroker(tmp_path / "broker", [network])
    try:
        broker.start(0, unheard)
        asking = GroupMembers(quick_settings(network.address), "g")
        awaited(lambda: _answers(asking))
        yield network
    finally:
        broker.stop()
        network.close()


def _answers(asking: GroupMembers) -> bool:
    try:
        return asking.now() == Members(set(), None)
    except TransportError:
        return False


def test_members_of_a_group(network: FaultyNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = GroupMembers(quick_settings(network.address), "g")
    reached = asking._reached

    def gone_by_then() -> KafkaAdmin:
        found = reached()
        network.refuse()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(membership, "_ANSWER_S", 1.0)
        patch.setattr(asking, "_reached", gone_by_then)
        with pytest.raises(TransportError) as kept:
            asking.now()
    network.accept()
    awaited(lambda: _answers(asking))
    time.sleep(_BACK_S)
    # What the exception holds, as the frames that it passed, has lived until here.
    assert "Timed out" in str(kept.value)


def test_positions_of_a_group(network: FaultyNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    with KafkaTransport(quick_settings(network.address)) as transport:
        assert transport.committed("g") == {}
        network.refuse()
        with monkeypatch.context() as patch:
            patch.setattr(transport._topics, "_timeout_s", 1.0)
            with pytest.raises(TransportError) as kept:
                transport.committed("g")
        network.accept()
        assert transport.committed("g") == {}
        time.sleep(_BACK_S)
        assert kept.value.place == "g"
