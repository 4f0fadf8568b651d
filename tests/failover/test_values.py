"""Value queries over HTTP while nodes are killed and halted under load: each is answered, as of a place in the log."""

import random
import threading
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from frontend.kafka.configuration import FrontEndConfiguration
from railgun.messaging.transport import TopicPartition
from tests.failover.running_cluster import Faults, RunningCluster
from tests.frontend.kafka.cluster import RunningFrontEnd, front_end
from tests.oracle.compare import metric_differences
from tests.strategies.case import STREAM
from tests.unit.answers_by_log import AskedValues, check_values
from tests.unit.local_units import quick_settings
from tests.unit.processes import DEFINITIONS

OF = {"card": ("n", "total", "usual"), "shop": ("of_shop", "newest", "most", "odd")}


class Asking:
    """A thread that asks for random keys. rate_per_s: of queries.  answers: to each, as JSON."""

    def __init__(self, served: RunningFrontEnd, rate_per_s: float, seed: int) -> None:
        self._served, self._pause_s, self._chance = served, 1 / rate_per_s, random.Random(seed)
        self._stopped = threading.Event()
        self.answers: list[Any] = []
        self.failures: list[str] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Asking":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._ask()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.failures.append(repr(error))

    def _ask(self) -> None:
        while not self._stopped.wait(self._pause_s):
            chance = self._chance
            keys = [
                {"card": f"c{chance.randrange(45)}", "shop": chance.randrange(17)}
                for _ in range(chance.choice((1, 1, 1, 5)))
            ]
            path = f"/v1/streams/{STREAM}/values?timeout_ms=20000"
            answer = self._served.post(path, {"keys": keys})
            if answer.status_code == 200:
                self.answers += answer.json()
            else:
                self.failures.append(answer.text)


def derived(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The derived metrics of DEFINITIONS that read no field of an event."""
    n, total = metrics["n"], metrics["total"]
    return {"both": n + metrics["of_shop"], "mean": None if total is None else total / n}


def check(cluster: RunningCluster, answers: list[Any]) -> int:
    """Compare the answers with the oracle's, task by task; how many parts of answers there were."""
    asked: dict[tuple[str, int], list[AskedValues]] = defaultdict(list)
    entry = cluster.player.registry.snapshot().catalog.streams[STREAM]
    for answer in answers:
        assert set(answer["as_of"]) == set(OF)
        found = {name: answer["metrics"].get(name, "missing") for name in ("both", "mean")}
        wrong = list(metric_differences(derived(answer["metrics"]), found))
        assert not wrong, f"{answer}: {wrong}"
        for partitioner, place in answer["as_of"].items():
            metrics = {name: answer["metrics"].get(name, "missing") for name in OF[partitioner]}
            asked[partitioner, cluster.partition(partitioner, answer["key"])].append(
                AskedValues(place["offset"], answer["key"], metrics, place["time"])
            )
    compared = 0
    for task in entry.task_keys:
        topic = cluster.player.registry.topics.tasks(task.stream, task.partitioner)
        records = cluster.log(TopicPartition(topic, task.partition))
        own = asked[task.partitioner, task.partition]
        compared += check_values(DEFINITIONS, task, records, lambda _, sequence: cluster.event(sequence), own)
    return compared


def play(kafka: str, folder: Path, seed: int, kinds: list[str], rate_per_s: float) -> int:
    cluster = RunningCluster(kafka, folder, seed, 2)
    try:
        served_by = FrontEndConfiguration(quick_settings(kafka), cluster.prefix)
        with front_end(served_by) as served, Asking(served, rate_per_s, seed) as asking:
            faults = Faults(cluster, random.Random(seed))
            cluster.drive(1.0)
            for kind in kinds:
                faults.one(kind)
        cluster.await_answers()
        assert not asking.failures, asking.failures[:3]
        return check(cluster, asking.answers)
    finally:
        cluster.close()


@pytest.mark.timeout(600)
def test_a_node_killed(kafka: str, tmp_path: Path) -> None:
    assert play(kafka, tmp_path, 1, ["node killed"], 30.0) > 200


@pytest.mark.torture
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(4))
def test_all_kinds(kafka: str, tmp_path: Path, seed: int) -> None:
    kinds = ["unit killed", "node halted", "node killed", "unit halted", "node stopped"]
    assert play(kafka, tmp_path, seed, kinds, 60.0) > 2_500
