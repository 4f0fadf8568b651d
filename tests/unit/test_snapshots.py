"""The snapshots of a unit's tasks: ordered by name from any thread, made beside the events, told once."""

from pathlib import Path

from railgun.host.data_folder import SNAPSHOTS
from railgun.task.snapshot_file import read_snapshot
from tests.unit.embedded_unit import embedded_unit

TASK = "s.1/k/{}"


def test_snapshots_are_made_beside_the_events_and_told_once(tmp_path: Path) -> None:
    with embedded_unit(tmp_path) as unit:
        orders = {"a0": 0, "b1": 1, "c2": 0}
        for name, partition in orders.items():
            unit.snapshots.ask(TASK.format(partition), name)
        unit.answers_meanwhile(0)
        unit.answers_meanwhile(1)
        unit.round_until(lambda: len(unit.made) == len(orders))
        assert sorted(unit.made) == [(name, "") for name in orders]
        for name, partition in orders.items():
            found = read_snapshot(unit.data / SNAPSHOTS / name)
            assert found.partition == partition
            assert 0 < found.position <= unit.host(partition).position
        unit.answers_meanwhile(0)
        assert len(unit.made) == len(orders)


def test_an_order_that_comes_again_is_not_carried_out_twice(tmp_path: Path) -> None:
    """The answer may have been lost."""
    with embedded_unit(tmp_path) as unit:
        for _ in range(3):
            unit.snapshots.ask(TASK.format(0), "a0")
            unit.loop.round()
        unit.round_until(lambda: bool(unit.made))
        found = read_snapshot(unit.data / SNAPSHOTS / "a0")
        unit.event(0)
        unit.made.clear()
        unit.snapshots.ask(TASK.format(0), "a0")
        unit.round_until(lambda: bool(unit.made))
        assert set(unit.made) == {("a0", "")}
        assert read_snapshot(unit.data / SNAPSHOTS / "a0") == found


def test_what_a_killed_unit_has_left_of_a_snapshot_is_replaced(tmp_path: Path) -> None:
    with embedded_unit(tmp_path) as unit:
        left = unit.data / SNAPSHOTS / "a0" / "state"
        left.mkdir(parents=True)
        (left / "000099.sst").write_text("a part")
        unit.snapshots.ask(TASK.format(0), "a0")
        unit.round_until(lambda: bool(unit.made))
        assert unit.made == [("a0", "")]
        assert read_snapshot(unit.data / SNAPSHOTS / "a0").partition == 0
        assert not (left / "000099.sst").exists()


def test_orders_that_cannot_be_carried_out_are_answered(tmp_path: Path) -> None:
    with embedded_unit(tmp_path) as unit:
        unit.snapshots.ask("s.2/k/0", "a0")
        unit.snapshots.ask(TASK.format(0), "../a0")
        unit.host(1).fail(RuntimeError("planted"))
        unit.snapshots.ask(TASK.format(1), "b1")
        unit.round_until(lambda: len(unit.made) == 3)
        errors = dict(unit.made)
        assert errors["a0"] == "s.2/k/0 has no copy here"
        assert "is no name of a snapshot" in errors["../a0"]
        assert "is not open here" in errors["b1"]
        assert not (unit.data / SNAPSHOTS).exists()


def test_a_task_that_is_closed_meanwhile_is_told(tmp_path: Path) -> None:
    with embedded_unit(tmp_path) as unit:
        unit.snapshots.ask(TASK.format(0), "a0")
        unit.loop.round()
        unit.host(0).fail(RuntimeError("planted"))
        unit.round_until(lambda: bool(unit.made))
        ((name, error),) = unit.made
        assert name == "a0"
        assert "given up: the task is closed" in error or not error
