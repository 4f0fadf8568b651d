"""A broker that goes away under a front-end, and comes back: whoever asks how it is hears of it."""

from frontend.kafka.backend import Cluster
from railgun.broker.local import LocalBroker
from tests.broker.shared_broker import unheard
from tests.frontend.kafka.cluster import front_end
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
