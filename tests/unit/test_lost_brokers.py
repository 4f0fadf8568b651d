"""A unit whose clients do not come back to the broker ends, to be started again."""

import threading
from pathlib import Path

import pytest

from railgun.config.loading import settings_of
from railgun.messaging.errors import TransportFailedError
from railgun.messaging.kafka.errors import ClientErrors
from railgun.node.parent import Parent
from railgun.unit.process import UnitPlace, run_unit
from tests.broker.lost_brokers import lose_brokers
from tests.broker.own_topics import own_prefix
from tests.unit.processes import write_config

_LIMIT_S = 60.0


class _Nobody(Parent):
    """Asks nothing; hears the unit's first sign of life."""

    def __init__(self) -> None:
        self.heard = threading.Event()

    def write(self, line: bytes) -> None:
        self.heard.set()


def test_one_whose_client_lost_its_brokers_ends_and_says_so(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_brokers(monkeypatch)
    config = write_config(tmp_path, kafka, own_prefix("l"))
    parent, stopped, raised = _Nobody(), threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            run_unit(settings_of(str(config), None), UnitPlace(tmp_path / "data", 0, 1), stopped, parent)
        except TransportFailedError as error:
            raised.append(error)

    unit = threading.Thread(target=run)
    unit.start()
    try:
        assert parent.heard.wait(_LIMIT_S)
        monkeypatch.setattr(ClientErrors, "reports", ClientErrors.reports + 1)
        unit.join(_LIMIT_S)
    finally:
        stopped.set()
        unit.join(_LIMIT_S)
    assert "a client has lost the brokers for good" in str(raised)
