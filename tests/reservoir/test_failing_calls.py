"""Whatever call to the file system fails: a typed error, nothing falsely durable, and a restart that goes on."""

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from reservoir.errors import StorageFailedError
from reservoir.executor import Executor
from reservoir.inline_executor import InlineExecutor
from reservoir.reservoir import Settings
from tests.reservoir.event_log import AMOUNT, NAME, EventLog
from tests.reservoir.failing_files import FailingFiles
from tests.reservoir.log_driver import Checkpoint, LogDriver
from tests.reservoir.log_strategies import seeded_log
from tests.reservoir.memory_files import MemoryFiles

FOLDER = Path("reservoir")
# A cache of no bytes, and segments of two chunks: as many calls as a short log can give.
SETTINGS = Settings(bytes(16), chunk_events=8, segment_bytes=2_500, cache_bytes=0)
HOT = (AMOUNT, NAME)


def a_log() -> EventLog:
    return seeded_log(11, 130, name_max=4)


class Run:
    """A log through a reservoir with a checkpoint every few batches; `saved` is the last that is durable."""

    def __init__(
        self, log: EventLog, files: FailingFiles | MemoryFiles, executor: Executor | None = None
    ) -> None:
        self.executor = executor
        self.driver: LogDriver | None = None
        self.saved: Checkpoint | None = None
        self.log, self.files = log, files

    def to_the_end(self) -> None:
        if self.saved is None:
            self.driver = LogDriver(FOLDER, self.log, SETTINGS, self.files, self.executor)
            self.driver.set_hot(HOT)
            for delta in (25, 40):
                self.driver.add_edge(delta)
            self.saved = self.driver.checkpoint()
        k = 0
        assert self.driver is not None
        while self.driver.position < len(self.log.records):
            self.driver.run(7)
            k += 1
            if k % 4 == 0:
                self.saved = self.driver.checkpoint()
        self.saved = self.driver.checkpoint()

    def again(self, files: MemoryFiles) -> None:
        """After the failure: from the last durable checkpoint, on a file system that works."""
        if self.driver is not None:
            self.driver.reservoir.close()
        if self.saved is not None and self.driver is not None:
            self.driver.files = files
            self.driver.recover(self.saved)
            self.driver.check_rows()
        self.files = files
        self.to_the_end()


def whole_run() -> tuple[int, dict[str, bytes]]:
    """Calls that a run makes, and the files it leaves."""
    files = MemoryFiles()
    counting = FailingFiles(files, None)
    run = Run(a_log(), counting)
    run.to_the_end()
    assert run.driver is not None
    run.driver.reservoir.close()
    return counting.calls, files.segments()


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.torture)])
@pytest.mark.parametrize("sticky", [False, True])
@pytest.mark.parametrize("how", ["EIO", "ENOSPC", "short"])
def test_the_kth_call_fails(how: str, sticky: bool, step: int) -> None:
    calls, wanted = whole_run()
    for k in range(0, calls, step):
        check_kth_call(k, how, sticky, wanted, None)


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.torture)])
def test_the_kth_call_fails_in_any_order(step: int) -> None:
    """Where nothing runs by itself: what is written, and what is decoded ahead, is left until somebody waits for it."""
    calls, wanted = whole_run()
    for k in range(0, calls, step):
        check_kth_call(k, "EIO", False, wanted, InlineExecutor(Random(k).randrange))


def check_kth_call(
    k: int, how: str, sticky: bool, wanted: dict[str, bytes], executor: Executor | None
) -> None:
    files = MemoryFiles()
    failing = FailingFiles(files, k, how, sticky=sticky)
    run = Run(a_log(), failing, executor)
    with suppress(StorageFailedError):
        run.to_the_end()
        assert how == "short" or not failing.harmful
    run.again(files)
    assert failing.misuse == [], f"k={k}"
    assert run.driver is not None
    run.driver.reservoir.close()
    assert files.segments() == wanted, f"k={k}"


def run_with_checkpoints(driver: LogDriver) -> None:
    while driver.position < len(driver.log.records):
        driver.run(7)
        driver.checkpoint()


def test_a_failed_write_is_told_at_the_next_call_and_for_good() -> None:
    files = MemoryFiles()
    failing = FailingFiles(files, None, "ENOSPC", sticky=True)
    driver = LogDriver(FOLDER, a_log(), SETTINGS, failing)
    driver.set_hot(HOT)
    failing._at = failing.calls
    with pytest.raises(StorageFailedError, match="No space left"):
        run_with_checkpoints(driver)
    for _ in range(3):
        with pytest.raises(StorageFailedError):
            driver.reservoir.append()
        with pytest.raises(StorageFailedError):
            driver.reservoir.sync(1)
    calls = failing.calls
    driver.reservoir.close()
    assert failing.calls == calls


@pytest.mark.parametrize("nth", range(6))
def test_a_failed_fsync_is_never_tried_again(nth: int) -> None:
    class Syncs(FailingFiles):
        syncs = 0

        def call(self, action: str, size_bytes: int = 0) -> int:
            if action in ("sync", "sync_folder"):
                self._at = self.calls if self.syncs == nth else None
                self.syncs += 1
            return super().call(action, size_bytes)

    failing = Syncs(MemoryFiles(), None)
    run = Run(a_log(), failing)
    with pytest.raises(StorageFailedError, match=r"fsync|write"):
        run.to_the_end()
    assert run.driver is not None
    for _ in range(2):
        with pytest.raises(StorageFailedError):
            run.driver.reservoir.sync(run.driver.reservoir.chunks)
    run.driver.reservoir.close()
    assert failing.misuse == []
