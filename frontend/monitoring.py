"""What `/metrics` of this server shows."""

import railgun
from frontend.embedded import EmbeddedBackend
from frontend.in_flight import InFlight
from railgun.telemetry.collector import RailgunCollector
from railgun.telemetry.exposition import Exposition


def exposition(backend: EmbeddedBackend, in_flight: InFlight) -> Exposition:
    """Everything that is noted and read of an embedded engine behind the door."""
    return Exposition(
        RailgunCollector(
            lambda: backend.recording,
            backend.reading,
            backend.disk,
            lambda: (in_flight.events, in_flight.size_bytes),
            lambda: backend.readiness().ready,
            railgun.__version__,
        )
    )
