"""What `/v1/live` warns of the process that answers: by the thresholds of its alerts, and told to `metrics` alone."""

import re
from pathlib import Path

import pytest

from frontend.backend.live_figures import InputStanding
from frontend.live import concerns, look
from frontend.live.unread import PACE_S, Unread
from railgun.config.settings import TlsSettings
from railgun.telemetry.reading import DiskReading
from tests.certificates import DAY, Authority
from tests.frontend.conftest import PAYMENTS
from tests.frontend.live.test_live import OWN, Scene
from tests.frontend.serving import server
from tests.watching.expressions import alerts

UNIT = "see whether a unit is away or behind, or the broker is slow"


def warnings(scene: Scene, *scopes: str) -> list[str]:
    return list(scene.said(*scopes or ("metrics",))["process"]["warnings"])


def test_thresholds_are_those_of_the_alerts() -> None:
    expressions = {each.name: each.expr for each in alerts()}

    def threshold(alert: str, pattern: str) -> float:
        found = re.search(pattern, expressions[alert])
        assert found is not None
        return float(found[1])

    free = threshold("RailgunDiskNearlyFull", r"railgun_disk_free_bytes < (\S+)")
    assert free == concerns.DISK_FREE_BYTES
    days = threshold("RailgunCertificateEnds", r"railgun_certificate_end_seconds - time\(\) < (\d+) \* 86400")
    assert days * 86_400 == concerns.CERTIFICATE_S
    assert threshold("RailgunEventsWait", r"railgun_pending_oldest_seconds > (\d+)") == concerns.WAITED_S
    assert threshold("RailgunInputBehind", r"> (\d+)\s*$") == concerns.NEEDED_S


def test_each_is_warned_of_beyond_its_threshold_and_not_before() -> None:
    scene = Scene()
    figures = scene.figures
    figures.free_bytes, figures.waits_s, scene.ends_in_s = 2 * 10**9, 5.0, 7 * 86_400.0 + 1
    for second in range(1, 62):
        figures.inputs_now = {OWN: InputStanding(299_000, 1_000 * second)}
        scene.tick()
    assert warnings(scene) == []
    # The disk is looked at each minute.
    scene.now_s += 60.0
    figures.free_bytes, figures.waits_s, scene.ends_in_s = 1_000_000, 5.1, 7 * 86_400.0
    figures.inputs_now = {OWN: InputStanding(900_000, 183_000)}
    scene.tick()
    disk, *others = warnings(scene)
    assert disk.startswith("the disk is nearly full, 1 MB are free, and a full one stops this server: ")
    assert others == [
        "the certificate runs out",
        f"an event has waited for 5 s to be answered: {UNIT}",
        f"records wait in the input topics of {OWN}, and at its pace it needs 7 min 30 s for them: {UNIT}",
    ]
    assert "process" not in scene.said("read:*")


class Topics:
    """Input topics of a stream, looked at once a second."""

    def __init__(self) -> None:
        self.unread, self.now_s, self.read = Unread(), 100.0, 0

    def seconds(self, seconds: int, waiting: int, per_s: int) -> dict[str, float]:
        """Let so much time pass. Return what is needed then."""
        for _ in range(seconds):
            self.now_s, self.read = self.now_s + 1.0, self.read + per_s
            self.unread.tick({"s": InputStanding(waiting, self.read)}, self.now_s)
        return self.unread.needed_s()


@pytest.fixture
def topics() -> Topics:
    return Topics()


def test_the_pace_is_that_of_a_minute(topics: Topics) -> None:
    assert topics.seconds(int(PACE_S), 100, 10) == {}
    assert topics.seconds(1, 100, 10) == {"s": 10.0}
    assert topics.seconds(30, 100, 0) == {"s": pytest.approx(100 / 5)}
    assert topics.seconds(30, 100, 0) == {}
    assert topics.seconds(1, 101, 0) == {"s": float("inf")}
    assert topics.seconds(600, 100, 20) == {"s": 5.0}
    assert len(topics.unread._kept["s"]) <= PACE_S + 2


def test_records_that_do_not_wait_for_a_minute_are_nobodys_concern(topics: Topics) -> None:
    """A single record of a quiet stream waits for a moment, and nothing was read before."""
    topics.seconds(300, 0, 0)
    assert topics.seconds(59, 1, 0) == {}
    assert topics.seconds(1, 0, 1) == {}
    assert topics.seconds(59, 1, 0) == {}
    # The mark of a transaction stays at the end of its partition.
    assert topics.seconds(200, 1, 0) == {}
    assert topics.seconds(2, 3, 0) == {"s": float("inf")}


def test_an_input_that_begins_again_is_measured_anew(topics: Topics) -> None:
    assert topics.seconds(100, 100, 10)
    topics.read = -1
    assert topics.seconds(60, 100, 1) == {}
    topics.unread.tick({}, topics.now_s)
    assert topics.unread.needed_s() == {}


def test_where_nothing_is_read_the_worst_stands_first() -> None:
    found = concerns.of_inputs({"slow": 400.0, "still": float("inf"), "quick": 300.0})
    assert found == [
        f"records wait in the input topics of still, and none is read: {UNIT}",
        f"records wait in the input topics of slow, and at its pace it needs 6 min 40 s for them: {UNIT}",
    ]


def test_a_server_warns_of_its_disk_and_its_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "PATIENCE_S", 60.0)
    authority = Authority(tmp_path, "servers")
    pair = authority.pair(until=3 * DAY)
    tls = TlsSettings(certificate=str(pair.certificate), key=str(pair.key))
    with server(tmp_path / "data", context=authority.client_context(), tls=tls, anonymous=True) as running:
        running.define(PAYMENTS)
        monkeypatch.setattr(
            running.backend.live_figures, "measure_disk", lambda: DiskReading(1, 2, 3, 1_000_000)
        )
        disk, certificate = running.client.get("/v1/live").json()["process"]["warnings"]
    assert disk.startswith("the disk is nearly full, 1 MB are free")
    assert certificate.startswith("the certificate (http.tls.certificate) runs out in 3.0 days (")
