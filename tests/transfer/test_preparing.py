"""Before bytes move a donor makes a snapshot and hashes it, and a target hashes what it has: that shows, and ends."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from railgun.node.relay import Fetching
from railgun.transfer import donor as donor_module
from railgun.transfer import fetch as fetch_module
from railgun.transfer import hashing, snapshots
from railgun.transfer.fetch import TaskFetch
from railgun.transfer.server import Application
from tests.transfer.made_up import TASK, MadeUpDonor, content, donors, fetch_of, fetched, order, write_files

_FILES = content()
_BYTES = sum(map(len, _FILES.values()))
_STEPS = 8
# A busy machine may take a second for a step.
_STANDS_S, _STEP_S = 3.0, 0.5


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_WAIT_S", 0.05)
    monkeypatch.setattr(donor_module, "STANDS_S", _STANDS_S)


def _noted(fetch: TaskFetch) -> list[Fetching]:
    """All that a fetch says of its progress from now on."""
    seen = list[Fetching]()

    class Noting(TaskFetch):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "progress":
                seen.append(value)

    fetch.__class__ = Noting
    return seen


def _hashing(monkeypatch: pytest.MonkeyPatch, step: Callable[[int], object]) -> None:
    """Have a donor count all bytes as hashed, in steps. step: is called with the number of each one."""
    make = snapshots.make_manifest

    def slow(*arguments: Any) -> bytes:
        for number in range(_STEPS):
            step(number)
            arguments[3](_BYTES // _STEPS)
        # Counted above; the bytes do not count twice.
        return make(*arguments[:3])

    monkeypatch.setattr(snapshots, "make_manifest", slow)


def test_a_donor_that_hashes_for_long_shows_how_far_it_is_and_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hashing(monkeypatch, lambda number: time.sleep(_STEP_S))
    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        fetch = fetch_of(order(tmp_path / "task", "n0"), addresses)
        seen = _noted(fetch)
        # All of it takes longer than a donor may stand still.
        assert fetch.run().error == ""
    hashed = [each.hashed for each in seen if (each.donor, each.total) == ("n0/0", 0)]
    assert hashed == sorted(hashed)
    assert len(set(hashed)) > 3
    assert 0 < hashed[-1] <= _BYTES
    assert seen[-1] == Fetching(TASK, "n0/0", _BYTES, _BYTES)


def test_a_donor_that_stops_hashing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = threading.Event()
    with donors(MadeUpDonor(tmp_path / "n0", _FILES), MadeUpDonor(tmp_path / "n1", _FILES)) as addresses:
        _hashing(monkeypatch, lambda number: number == 3 and stuck.wait(30.0))
        begun_s = time.monotonic()
        assert (
            "it has got no further with its snapshot for 3 s"
            in fetched(tmp_path / "task", addresses, "n0").error
        )
        assert time.monotonic() - begun_s < 20.0
        monkeypatch.undo()
        assert fetched(tmp_path / "task", addresses, "n1").error == ""
        stuck.set()


def test_a_donor_whose_unit_does_not_answer_is_left(tmp_path: Path) -> None:
    hung, stuck = MadeUpDonor(tmp_path / "n0", _FILES), threading.Event()
    hung.on_order = lambda name: stuck.wait(30.0)
    with donors(hung, MadeUpDonor(tmp_path / "n1", _FILES)) as addresses:
        fetch = fetch_of(order(tmp_path / "task", "n0", "n1"), addresses)
        seen = _noted(fetch)
        assert fetch.run().donor == "n1/0"
        # It did not wait for its turn.
        assert seen[0] == Fetching(TASK, "n0/0")
        stuck.set()


def test_a_task_is_hashed_beside_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the second fetch would show nothing for as long as the first task takes."""
    first, go_on, make = threading.Lock(), threading.Event(), snapshots.make_manifest

    def one_waits(*arguments: Any) -> bytes:
        if first.acquire(blocking=False):
            go_on.wait(30.0)
        return make(*arguments)

    monkeypatch.setattr(snapshots, "make_manifest", one_waits)
    monkeypatch.setattr(donor_module, "STANDS_S", 60.0)
    donor = MadeUpDonor(tmp_path / "n0", _FILES)
    with donors(donor) as addresses:
        one = donor_module.Donor(addresses["n0"], "a", True, lambda hashed: None)
        name = one.snapshot(1, TASK)
        asking = threading.Thread(target=one.manifest, args=[name])
        asking.start()
        assert fetched(tmp_path / "task", addresses, "n0").error == ""
        go_on.set()
        asking.join()
        one.__exit__()


def test_what_is_hashed_here_is_shown(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    write_files(folder.with_name("task.fetching"), _FILES)
    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        fetch = fetch_of(order(folder, "n0"), addresses)
        seen = _noted(fetch)
        assert fetch.run().bytes == 0
    assert [each.hashed for each in seen if each.total == 0][-2] == _BYTES


def test_a_fetch_whose_donor_is_busy_amid_it_does_not_hash_again_what_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_module, "BUSY_S", 0.05)
    folder, asked, hashed = tmp_path / "task", list[str](), list[Path]()

    def wrap(application: Application) -> Any:
        async def busy_once(scope: Any, receive: Any, send: Any) -> None:
            if "/files/" in scope["path"]:
                asked.append(scope["path"])
                if len(asked) == 5:
                    await send(
                        {"type": "http.response.start", "status": 503, "headers": [(b"content-length", b"0")]}
                    )
                    await send({"type": "http.response.body", "body": b""})
                    return
            await application(scope, receive, send)

        return busy_once

    real = hashing.hash_of

    def noted(path: Path, *more: Any) -> str:
        hashed.append(path)
        return real(path, *more)

    monkeypatch.setattr(hashing, "hash_of", noted)
    with donors(MadeUpDonor(tmp_path / "n0", _FILES, wrap=wrap)) as addresses:
        end = fetched(folder, addresses, "n0")
    assert (end.error, end.bytes) == ("", _BYTES)
    assert len(asked) > 5
    assert not [each for each in hashed if "task.fetching" in str(each)]
