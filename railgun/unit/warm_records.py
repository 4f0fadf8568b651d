"""The `warm` records that a unit writes for its tasks, once each: a task meets them in its log."""

from collections.abc import Sequence
from concurrent.futures import Future

from railgun.catalog.changes import Warm, change_to_json
from railgun.host.place import Place
from railgun.messaging.transport import Entry, Transport
from railgun.wire.encode import encode_control


class WarmRecords:
    """Called for one host: as long as a record is due, and was not written yet."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._written: dict[Warm, Future[list[int]]] = {}

    def __call__(self, place: Place, due: Sequence[Warm]) -> None:
        for warm in due:
            written = self._written.get(warm)
            if written is None or (written.done() and written.exception() is not None):
                record = encode_control(change_to_json(warm))
                self._written[warm] = self._transport.submit([Entry(place.where, [record])])
