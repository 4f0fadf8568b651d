"""Writes folders of nodes and of an engine as they are now: run once per version, then leave them alone.

python -m tests.golden.make_folders

Each folder has beside it what is said to events that come next (`expected.json`) and, of a node, the task's log
(`log.json`, records in hexadecimal).
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import railgun
from railgun.catalog.changes import AddHistory, AddMetric, Deepen, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.engine.engine import Engine
from railgun.history.build import HistoryPlan
from railgun.history.manifest import ready_folder
from railgun.history.task_folder import POINTER
from railgun.host.place import task_folder
from railgun.wire.control_records import encode_control
from tests.engine import make_golden
from tests.engine.deepening.deepened import build_deepening
from tests.engine.histories import build_history
from tests.golden.one_task import OneTask, one_task
from tests.golden.portable import brought_back, written_down
from tests.history import test_accepted_events
from tests.history.test_accepted_events import DEFINITIONS
from tests.host.deepening.deepened_host import HISTORY, SETTINGS, DeepenedHost
from tests.host.deepening.test_take_over import events
from tests.task.small_log import IDENTITY, SmallLog
from tests.unit.local_units import awaited

FOLDERS = Path(__file__).parent / "folders"
STREAM, CUT_MS = "payments", make_golden.events(0, 1)[0]["ts"] + 20_000
ENGINE_DEFINITIONS = make_golden.DEFINITIONS.replace('["card", "*"]', '["card"]').partition(
    '[[metrics]]\nsql = "SELECT count(*) AS all'
)[0]


def begun_with_history(folder: Path) -> tuple[Path, list[bytes]]:
    """A node's folder whose task has history before its log, and a checkpoint among events of an input topic."""
    log, numbers = SmallLog(DEFINITIONS), range(40)
    table = pa.table(
        {
            "id": [f"h{number}" for number in numbers],
            "ts": [1_000_000 + 100 * number for number in numbers],
            "k": ["a"] * len(numbers),
        }
    )
    metrics = parse_definitions(DEFINITIONS).metrics
    plan = HistoryPlan(
        history=HISTORY,
        key=IDENTITY.key,
        created=1,
        schemas={1: log.stream},
        metrics=[AddMetric(place, metric) for place, metric in enumerate(metrics, 2)],
        last_place=2,
        cut_ms=1_100_000,
        chunk_events=SETTINGS.chunk_events,
        segment_bytes=SETTINGS.segment_bytes,
    )
    build_history(ready_folder(folder / "node", "s"), plan, table, SETTINGS)
    announced = encode_control(change_to_json(AddHistory(3, "s", HISTORY, plan.cut_ms, known_place=2)))
    with one_task(folder / "node", folder / "log", [*log.records, announced]) as task:
        task.add(events(0, 20))
        task.host.checkpoint()
        task.add(events(20, 5))
        return folder / "node", task.records()


def followed(folder: Path) -> tuple[Path, list[bytes]]:
    """A node's folder in which a task is deepened: put aside, built, offered, followed; not taken over yet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_accepted_events, "EVENTS", 60)
        rig = DeepenedHost(folder)
    try:
        rig.begin()
        rig.offer()
        rig.work_until_following()
        rig.add(events(0, 20))
        rig.host.checkpoint()
        rig.add(events(20, 5))
        records = rig.log.read(*rig.place.where, 0, 1 << 16, 1 << 24).values()
    finally:
        rig.close()
        rig.log.close()
    return rig.data, records


def goes_on(task: OneTask) -> None:
    """Some records of the input topic come again."""
    task.add(events(15, 20))


def takes_over(task: OneTask) -> None:
    """The task that was built goes on in the other's stead."""
    task.follow()
    task.add(events(15, 20))
    task.add([encode_control(change_to_json(Deepen(99, "s", HISTORY, 0)))])
    task.add(events(30, 20))


def taken_over(folder: Path) -> tuple[Path, list[bytes]]:
    """A node's folder in which the task that was built has taken over, and is in its own folder."""
    data = brought_back(FOLDERS / "followed" / "data", folder / "node")
    with one_task(data, folder / "log", log_of("followed")) as task:
        takes_over(task)
        pointer = task_folder(data, "s", 1, "k", 0) / POINTER
        awaited(lambda: (task.host.work(), pointer.is_file())[1])
        awaited(lambda: not (pointer.parent / "reservoir").exists())
        return data, task.records()


def log_of(name: str) -> list[bytes]:
    """The records of a node's log."""
    return [bytes.fromhex(each) for each in json.loads((FOLDERS / name / "log.json").read_text("ascii"))]


def write_node(name: str, made: tuple[Path, list[bytes]]) -> None:
    """A folder, its log, and what is said next."""
    data, records = made
    written_down(data, FOLDERS / name / "data")
    text = json.dumps([each.hex() for each in records], indent=0)
    (FOLDERS / name / "log.json").write_text(f"{text}\n", encoding="ascii")
    with tempfile.TemporaryDirectory() as folder:
        write_expected(name, node_goes_on(name, Path(folder)))


def node_goes_on(name: str, folder: Path) -> list[Any]:
    """What the task of a node's folder says next."""
    data = brought_back(FOLDERS / name / "data", folder / "node")
    with one_task(data, folder / "log", log_of(name)) as task:
        GO_ON[name](task)
        return task.replies()


GO_ON = {"begun_with_history": goes_on, "followed": takes_over, "taken_over": goes_on}
ENGINE = "engine_deepening"


def engine(data: Path) -> Engine:
    """An engine on a folder of these."""
    return railgun.Engine(data, settings=make_golden.SETTINGS)


def deepening_under_way(folder: Path) -> Path:
    """An engine's folder with a deepening that is built and not installed."""
    data = folder / "data"
    with engine(data) as opened:
        opened.apply(ENGINE_DEFINITIONS)
        opened.score_many(STREAM, make_golden.events(50, 60))
        plan = opened.begin_deepening(STREAM, CUT_MS)
        fields = plan.stream.schema(1).fields
        rows = [{**each, "price": str(each["price"])} for each in make_golden.events(0, 50)]
        table = pa.table({each.name: [row[each.name] for row in rows] for each in fields})
        build_deepening(ready_folder(data, STREAM), plan, table, make_golden.SETTINGS)
        opened.score_many(STREAM, make_golden.events(110, 10))
    return data


def engine_goes_on(folder: Path) -> list[Any]:
    """What the engine of a folder says before and after it has installed the deepening."""
    with engine(brought_back(FOLDERS / ENGINE / "data", folder / "data")) as opened:
        replies: list[Any] = opened.score_many(STREAM, make_golden.events(120, 5))
        opened.deepen(STREAM)
        return replies + opened.score_many(STREAM, make_golden.events(125, 20))


def write_expected(name: str, replies: list[Any]) -> None:
    """What is said next."""
    (FOLDERS / name / "expected.json").write_text(json.dumps(replies) + "\n", encoding="utf-8")


def main() -> None:
    """All of them."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_node("begun_with_history", begun_with_history(folder / "a"))
        write_node("followed", followed(folder / "b"))
        write_node("taken_over", taken_over(folder / "c"))
        written_down(deepening_under_way(folder / "d"), FOLDERS / ENGINE / "data")
        write_expected(ENGINE, engine_goes_on(folder / "e"))


if __name__ == "__main__":
    main()
