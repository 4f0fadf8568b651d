"""The answer of `/v1/live`: who sees which part, how often each is encoded, and that its models describe it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from frontend.access.masks import Masks
from frontend.backend.live_figures import (
    ClusterStanding,
    InputStanding,
    StreamStanding,
    Waiting,
    Warming,
    Way,
)
from frontend.backend.readiness import READY, Readiness
from frontend.live import live, models
from frontend.live.live import Live
from railgun.access.scopes import Scopes
from railgun.catalog.catalog import StreamEntry
from railgun.telemetry.reading import DiskReading
from railgun.telemetry.recording import TOTAL, StreamRecord

OWN, FOREIGN = "payments", "ledger_x"
NOW_MS = 1_700_000_000_000


class Figures:
    """Of two streams, of which the second one has much that nobody else may read."""

    name, has_cluster = "front-end-1", True

    def __init__(self) -> None:
        self.recorded = {OWN: StreamRecord(), FOREIGN: StreamRecord()}
        self.from_topics = StreamRecord()
        self.looks = self.measured = 0
        self.waits_s, self.free_bytes = 0.123_456, 4 * 10**9
        self.inputs_now: dict[str, InputStanding] = {}
        self.standings = {
            OWN: StreamStanding(3, Warming({"slow": 0.25, "quick": 0.75}, 40.0)),
            FOREIGN: StreamStanding(
                777, Warming({"secret_metric": 0.5}, 40.0), True, 9, ("secret_partitioner-0 lacks events",)
            ),
        }

    def records(self) -> Iterator[tuple[str, Way, StreamRecord]]:
        for stream, record in self.recorded.items():
            yield stream, Way.HTTP, record
        yield FOREIGN, Way.TOPICS, self.from_topics

    def streams(self) -> dict[str, StreamStanding]:
        return self.standings

    def entries(self) -> dict[str, StreamEntry]:
        return {}

    def waiting(self) -> Waiting:
        return Waiting(5, 500, self.waits_s)

    def inputs(self) -> dict[str, InputStanding]:
        return self.inputs_now

    def cluster(self) -> ClusterStanding:
        at_s = 45.0 if self.looks else None
        tasks = [f"{FOREIGN}/secret_partitioner/{number}" for number in range(300)]
        nodes, copies = {"live": 3}, {"answering": 4, "unheard": 1}
        return ClusterStanding(tasks, at_s, "n1", 2, 1, nodes, copies, [f"{FOREIGN} is ill"] * 300)

    def look_at_cluster(self) -> None:
        self.looks += 1

    def measure_disk(self) -> DiskReading:
        self.measured += 1
        return DiskReading(1, 2, 3, self.free_bytes)


class Scene:
    """An answerer over such figures, on a clock of the test's own. encoded: the parts that were encoded."""

    def __init__(self) -> None:
        self.figures, self.now_s, self.standing, self.ends_in_s = Figures(), 50.0, READY, 8 * 86_400.0
        self.live = Live(
            self.figures,
            lambda: self.standing,
            lambda: (7, 77),
            Masks(),
            lambda: self.now_s,
            lambda: NOW_MS + round(1_000 * (self.now_s - 50.0)),
            self.ending,
        )
        self.live.tick()

    def ending(self, within_s: float) -> list[str]:
        return [] if within_s < self.ends_in_s else ["the certificate runs out"]

    def tick(self) -> None:
        self.now_s += 1.0
        self.live.tick()

    def text(self, *scopes: str) -> bytes:
        return asyncio.run(self.live.answer(Scopes(scopes)))

    def said(self, *scopes: str) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.text(*scopes))
        return found


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was encoded."""
    found: list[object] = []

    def encode(value: object) -> bytes:
        found.append(value)
        return msgspec.json.encode(value)

    monkeypatch.setattr(live, "_encode", encode)
    return found


def test_everything(scene: Scene) -> None:
    record = scene.figures.recorded[OWN]
    record.events += 20
    record.stages[TOTAL].add(0.001, 10)
    scene.figures.from_topics.events += 30
    scene.now_s += 9.0
    scene.tick()
    said = scene.said("*")
    assert said["front_end"] == {"name": "front-end-1", "started_ms": NOW_MS}
    assert said["as_of_ms"] == NOW_MS + 10_000
    assert said["process"] == {
        "release": said["process"]["release"],
        "ready": True,
        "reason": None,
        "in_flight_events": 7,
        "in_flight_bytes": 77,
        "waiting": {"events": 5, "bytes": 500, "oldest_s": 0.123},
        "disk": {
            "events_bytes": 1,
            "state_bytes": 2,
            "log_bytes": 3,
            "free_bytes": 4 * 10**9,
            "as_of_ms": NOW_MS + 10_000,
        },
        "warnings": [],
    }
    cluster = said["cluster"]
    assert (cluster["unanswered"], len(cluster["unanswered_tasks"]), len(cluster["warnings"])) == (
        300,
        100,
        100,
    )
    assert (cluster["leader"], cluster["wanted"], cluster["moves"]) == ("n1", 2, 1)
    assert (cluster["nodes"], cluster["copies"]) == ({"live": 3}, {"answering": 4, "unheard": 1})
    assert cluster["as_of_ms"] == NOW_MS - 5_000
    own, foreign = said["streams"]
    assert (own["name"], own["metrics"], own["topics"], own["unanswered"]) == (OWN, 3, None, 0)
    window = own["http"]["last_10_s"]
    assert (window["events"], window["events_per_s"]) == (20, 2.0)
    assert window["latency"] == {"count": 10, "p50_ms": 1.0, "p99_ms": 1.0, "p999_ms": 1.0}
    assert own["warming"] == {
        "count": 2,
        "least": [{"name": "slow", "filled": 0.25}, {"name": "quick", "filled": 0.75}],
        "as_of_ms": NOW_MS - 10_000,
    }
    assert foreign["topics"]["last_60_s"]["events"] == 30
    assert foreign["http"]["last_60_s"]["events"] == 0


def test_the_models_have_all_that_is_said(scene: Scene) -> None:
    for scopes in (["*"], ["read:*"], ["metrics"]):
        said = scene.said(*scopes)
        assert models.Live.model_validate(said).model_dump(exclude_unset=True) == said
    scene.figures.standings[OWN] = StreamStanding(0, None)
    scene.standing = Readiness(False, "starting")
    scene.tick()
    said = scene.said("*")
    assert (said["process"]["ready"], said["process"]["reason"]) == (False, "starting")
    assert said["streams"][0]["warming"] is None
    assert models.Live.model_validate(said).model_dump(exclude_unset=True) == said


def test_a_token_sees_its_stream_alone(scene: Scene) -> None:
    """No name, number or error of another one, and no totals."""
    before = scene.text(f"read:{OWN}")
    for secret in (FOREIGN, "secret", "777", "cluster", "process"):
        assert secret.encode() in scene.text("*")
        assert secret.encode() not in before
    # Whatever happens to the other stream, nothing of it shows.
    record = scene.figures.recorded[FOREIGN]
    record.events += 1_000
    record.refused["full"] += 50
    scene.figures.standings[FOREIGN] = StreamStanding(1, None, unanswered=3, warnings=("it is ill",))
    scene.live.tick()
    assert scene.text(f"read:{OWN}") == before


@pytest.mark.parametrize(
    ("scopes", "streams", "sees_all"),
    [
        (["*"], [OWN, FOREIGN], True),
        (["read:*"], [OWN, FOREIGN], False),
        ([f"read:{FOREIGN}"], [FOREIGN], False),
        ([f"define:{OWN}"], [OWN], False),
        ([f"score:{OWN}", f"inspect:{OWN}"], [], False),
        (["metrics"], [], True),
        (["operate"], [], True),
        (["metrics", f"read:{OWN}"], [OWN], True),
        ([], [], False),
    ],
)
def test_who_sees_what(scene: Scene, scopes: list[str], streams: list[str], sees_all: bool) -> None:
    said = scene.said(*scopes)
    assert [each["name"] for each in said["streams"]] == streams
    assert set(said) == {"front_end", "as_of_ms", "streams", *(["process", "cluster"] if sees_all else [])}


def test_each_part_is_encoded_once_a_second(scene: Scene, encoded: list[object]) -> None:
    for seconds in range(1, 4):
        for scopes in (["*"], [f"read:{OWN}"], ["read:*"], ["metrics"], []):
            for _ in range(50):
                scene.text(*scopes)
        # The head, the process, the cluster and two streams.
        assert len(encoded) == 5 * seconds
        scene.tick()


def test_nothing_is_encoded_for_nobody(scene: Scene, encoded: list[object]) -> None:
    for _ in range(5):
        scene.tick()
    scene.text(f"read:{OWN}")
    assert len(encoded) == 2
    assert (scene.figures.looks, scene.figures.measured) == (1, 0)


def test_the_disk_is_measured_each_minute_and_the_cluster_each_5_s(scene: Scene) -> None:
    for _ in range(120):
        scene.text("metrics")
        scene.tick()
    assert (scene.figures.looks, scene.figures.measured) == (24, 2)


def test_a_caller_before_the_first_tick_gets_an_answer() -> None:
    figures = Figures()
    made = Live(figures, lambda: READY, lambda: (0, 0), Masks())
    said = msgspec.json.decode(asyncio.run(made.answer(Scopes(["*"]))))
    assert [each["name"] for each in said["streams"]] == [OWN, FOREIGN]


def test_events_do_not_wait_for_all_parts(scene: Scene) -> None:
    """Whoever shares the loop has it between two streams."""
    turns = []

    async def others() -> None:
        while True:
            turns.append(len(scene.live._parts))
            await asyncio.sleep(0)

    async def run() -> None:
        beside = asyncio.ensure_future(others())
        await scene.live.answer(Scopes(["read:*"]))
        beside.cancel()

    asyncio.run(run())
    # The head, then a stream at a time.
    assert {2, 3} <= set(turns)
