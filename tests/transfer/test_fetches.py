"""The fetches of a node: two at once, the others wait; units are told how far they have come."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from railgun.node.relay import Fetched, Fetching, Message, StopFetch
from railgun.transfer import fetches as fetches_module
from railgun.transfer.donor import DonorAddress
from railgun.transfer.fetch import StoppedError
from railgun.transfer.fetches import Fetches
from tests.transfer.made_up import fetch_of, order

_ADDRESSES = {name: DonorAddress(f"http://{name}:1", "00") for name in ("n0", "n1")}


class _Held:
    """A fetch that ends when it is let go."""

    made: list["_Held"]

    def __init__(self, ordered: Any, setting: object) -> None:
        self.order, self.progress = ordered, Fetching(ordered.task, f"{ordered.donors[0][0]}/0", 1, 2)
        self.is_stopped, self.over = False, threading.Event()
        self.made.append(self)

    def stop(self) -> None:
        self.is_stopped = True
        self.over.set()

    def run(self) -> Fetched:
        assert self.over.wait(10)
        if self.is_stopped:
            raise StoppedError
        return Fetched(self.order.task, "", 7, "n0/0", 2, 0)


class _Node:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        _Held.made = []
        monkeypatch.setattr(fetches_module, "TaskFetch", _Held)
        self.now_s, self.said = 0.0, list[tuple[str, Message]]()
        self.setting = fetch_of(order(Path("/data")), _ADDRESSES)._setting
        self.fetches = Fetches(self.setting, lambda to, message: self.said.append((to, message)), self._now)

    def _now(self) -> float:
        return self.now_s

    def step(self) -> list[tuple[str, Message]]:
        self.said.clear()
        self.fetches.step()
        return list(self.said)

    def awaited(self) -> list[tuple[str, Message]]:
        deadline_s = time.monotonic() + 10
        while not (said := self.step()):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        return said


def test_two_run_and_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    node = _Node(monkeypatch)
    for number in range(3):
        node.fetches.order(f"unit {number}", order(Path("/data"), "n0", task=f"t{number}"))
    assert node.step() == [
        ("unit 2", Fetching("t2")),
        ("unit 0", Fetching("t0", "n0/0", 1, 2)),
        ("unit 1", Fetching("t1", "n0/0", 1, 2)),
    ]
    # Nothing is new; but units hear again and again that their orders are not forgotten.
    assert node.step() == []
    # Bytes are told of now and then.
    _Held.made[0].progress = Fetching("t0", "n0/0", 2, 2)
    assert node.step() == []
    node.now_s = 0.5
    assert node.step() == [("unit 0", Fetching("t0", "n0/0", 2, 2))]
    node.now_s = 2.5
    assert len(node.step()) == 3
    _Held.made[0].over.set()
    assert node.awaited() == [
        ("unit 0", Fetched("t0", "", 7, "n0/0", 2, 0)),
        ("unit 2", Fetching("t2", "n0/0", 1, 2)),
    ]
    assert node.setting.figures.now()["fetches_running"] == 2
    node.fetches.close()


def test_an_order_that_comes_again_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    node = _Node(monkeypatch)
    for _ in range(2):
        node.fetches.order("unit 0", order(Path("/data"), "n0"))
        assert len(node.step()) == 1
    assert len(_Held.made) == 1
    node.fetches.close()


def test_an_order_that_is_taken_back_ends_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    node = _Node(monkeypatch)
    for number in range(3):
        node.fetches.order("unit 0", order(Path("/data"), "n0", task=f"t{number}"))
    node.step()
    for number in (0, 2):
        node.fetches.stop("unit 0", StopFetch(f"t{number}"))
    # It is ordered anew while the one before still ends.
    node.fetches.order("unit 0", order(Path("/data"), "n0", task="t0"))
    deadline_s = time.monotonic() + 10
    said = list[tuple[str, Message]]()
    while len(_Held.made) < 3:
        said += node.step()
        assert time.monotonic() < deadline_s
    assert [each.order.task for each in _Held.made] == ["t0", "t1", "t0"]
    assert not any(isinstance(message, Fetched) for _, message in said)
    node.fetches.close()


def test_several_donors_give_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    node = _Node(monkeypatch)
    for number, donor in enumerate(("n0", "n0", "n0", "n1", "n1")):
        node.fetches.order("unit 0", order(Path("/data"), donor, task=f"t{number}"))
    node.step()
    begun = ["t0", "t3", "t1", "t4", "t2"]
    for ended in range(3):
        assert [each.order.task for each in _Held.made] == begun[: ended + 2]
        _Held.made[ended].over.set()
        node.awaited()
    assert [each.order.task for each in _Held.made] == begun
    node.fetches.close()


def test_an_order_is_taken_back_only_by_the_unit_that_gave_it_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy has moved from unit 0 to unit 1."""
    node = _Node(monkeypatch)
    for task in ("t0", "t1", "t2"):
        for unit in ("unit 0", "unit 1"):
            node.fetches.order(unit, order(Path("/data"), "n0", task=task))
            node.step()
        node.fetches.stop("unit 0", StopFetch(task))
    node.now_s = 10.0
    assert {(to, message.task) for to, message in node.step() if isinstance(message, Fetching)} == {
        ("unit 1", "t0"),
        ("unit 1", "t1"),
        ("unit 1", "t2"),
    }
    assert not any(each.is_stopped for each in _Held.made)
    node.fetches.close()


def test_orders_whose_donors_serve_nothing_end_without_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    node = _Node(monkeypatch)
    for number in range(4):
        node.fetches.order(f"unit {number}", order(Path("/data"), "n7", "n8", task=f"t{number}"))
    node.fetches.order("unit 4", order(Path("/data"), "n7", "n1", task="t4"))
    # The donors may say within a moment where they serve.
    node.step()
    assert [each.order.task for each in _Held.made] == ["t4"]
    node.now_s = 10.0
    assert [each for each in node.step() if isinstance(each[1], Fetched)] == [
        (f"unit {number}", Fetched(f"t{number}", "no donor serves snapshots: n7, n8", is_final=True))
        for number in range(4)
    ]
    assert node.setting.figures.now()["fetches_failed_total"] == 4
    node.fetches.close()


def test_a_fetch_that_ends_by_an_unexpected_error_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    node = _Node(monkeypatch)

    def run(fetch: _Held) -> Fetched:
        raise ValueError("not\na URL")

    monkeypatch.setattr(_Held, "run", run)
    node.fetches.order("unit 0", order(Path("/data"), "n0", task="t0"))
    said = list[tuple[str, Message]]()
    while not any(isinstance(message, Fetched) for _, message in said):
        said = node.awaited()
    assert said[-1] == ("unit 0", Fetched("t0", "ValueError: not a URL"))
    node.fetches.close()
