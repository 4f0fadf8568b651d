"""Who the members of a group are is told again when a broker is back that was killed."""

import contextlib
import os
import signal
import time

import pytest

from railgun.broker.local import LocalBroker
from railgun.messaging.errors import TransportError, TransportRefusedError
from railgun.messaging.kafka.membership import GroupMembers, GroupMembership, Members
from railgun.messaging.kafka.transport import KafkaTransport
from tests.broker.own_topics import own_prefix
from tests.broker.quick_broker import started_again, unheard
from tests.unit.local_units import awaited, quick_settings

_SESSION_S = 6.0
# So long that a client has given its connection up.
_AWAY_S = 5.0


def test_they_are_told_again_when_a_killed_broker_is_back(broker: LocalBroker) -> None:
    status = broker.start(0, unheard)
    settings, group = quick_settings(status.address), "g"
    with KafkaTransport(settings) as transport:
        transport.create_topic("lead", 1)
    asking = GroupMembers(settings, group)
    with GroupMembership(settings, group, "lead", "node-1", _SESSION_S) as membership:

        def found() -> Members | None:
            membership.poll(0.05)
            with contextlib.suppress(TransportError):
                return asking.now()
            return None

        awaited(lambda: found() == Members({"node-1"}, "node-1"))
        os.kill(status.pid, signal.SIGKILL)
        awaited(lambda: broker.status() is None)
        time.sleep(_AWAY_S)
        with pytest.raises(TransportError):
            asking.now()
        started_again(broker, int(status.address.partition(":")[2]))
        awaited(lambda: found() == Members({"node-1"}, "node-1"))


def test_a_session_that_the_broker_does_not_allow_is_refused(kafka: str) -> None:
    settings, group = quick_settings(kafka), own_prefix("g")
    with KafkaTransport(settings) as transport:
        transport.create_topic(group, 1)
    with GroupMembership(settings, group, group, "node-1", 1.0) as membership:

        def poll() -> bool:
            membership.poll(0.1)
            return False

        with pytest.raises(
            TransportRefusedError, match=r"session_timeout_s: the broker refuses a session of 1 s"
        ):
            awaited(poll)
