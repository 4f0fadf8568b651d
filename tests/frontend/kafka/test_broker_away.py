"""A broker that goes away under a front-end, and comes back: whoever asks how it is hears of it."""

from collections.abc import Callable
from typing import Any

from frontend.kafka.backend import Cluster
from railgun.broker.local import LocalBroker
from tests.broker.shared_broker import unheard
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.cluster import define, front_end
from tests.frontend.serving import until
from tests.unit.local_units import quick_settings


def test_it_is_not_ready_while_the_broker_is_away(broker: LocalBroker) -> None:
    status = broker.start(0, unheard)
    with front_end(Cluster(quick_settings(status.address))) as served:
        broker.stop()
        until(lambda: served.client.get("/readyz").status_code == 503)
        reason = served.client.get("/readyz").json()["detail"]
        assert f"waiting for the broker, which is asked again: {status.address}: " in reason
        # What can be read without it is read; events are taken, for as long as they may wait.
        assert served.client.get("/v1/streams").status_code == 200
        broker.start(int(status.address.partition(":")[2]), unheard)
        until(lambda: served.client.get("/readyz").status_code == 200)


def test_events_that_want_no_replies_name_the_partitioners_that_they_are_sent_to(
    broker: LocalBroker, event: Callable[..., dict[str, Any]]
) -> None:
    status = broker.start(0, unheard)
    with front_end(Cluster(quick_settings(status.address))) as served:
        define(served.client, PAYMENTS)
        broker.stop()
        events, query = [event(), event(card=None)], {"reply": "none", "timeout_ms": "300"}
        receipt = served.post("/v1/streams/payments/events", events, params=query).json()
        missing = [each["problem"]["partitioners"] for each in receipt["problems"]]
        assert missing == [["card", "*"], ["*"]]
        # It stops at once where the broker is there.
        broker.start(int(status.address.partition(":")[2]), unheard)
