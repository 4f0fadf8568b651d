"""`railgun serve` at one address, killed with -9 as work goes on, and started again on its data."""

import contextlib
import random
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from railgun.broker.held_ports import held_port, number_of
from tests.forked import ROOT, Forked
from tests.frontend.serving import PATIENCE_S


class MortalServer:
    """kills: how often it was killed. In its `with` block it is killed so many times, each after more work was done.

    Tell it of work by `done`. definitions: the text of a file.
    """

    def __init__(self, folder: Path, definitions: str, seed: int, kills: int, work: int) -> None:
        self._folder, self._random = folder, random.Random(seed)
        # Before all work is done, so that every kill finds somebody at work.
        self._kill_at = sorted(self._random.sample(range(work * 9 // 10), kills))
        self._definitions = folder / "definitions.toml"
        self._definitions.write_text(definitions)
        self._held = held_port()
        self._address = f"127.0.0.1:{number_of(self._held)}"
        self.url = f"http://{self._address}"
        self.kills = self._work_done = 0
        self._working, self._is_over = threading.Condition(), False
        self._failure: BaseException | None = None
        self._killer = threading.Thread(target=self._run, name="killer")

    def __enter__(self) -> Self:
        self._killer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._working:
            self._is_over = True
            self._working.notify_all()
        self._killer.join(PATIENCE_S)
        self._held.close()
        assert not self._killer.is_alive()
        if self._failure is not None:
            raise self._failure

    def done(self, work: int) -> None:
        """So many events were answered."""
        with self._working:
            self._work_done += work
            self._working.notify_all()

    def _run(self) -> None:
        try:
            for kill_at in [*self._kill_at, None]:
                self._life(kill_at)
        except BaseException as error:  # noqa: BLE001 - the block's end raises it
            self._failure = error

    def _life(self, kill_at: int | None) -> None:
        """Serve until so much work is done, then die amid more of it; to the end where that is None."""
        words = ["serve", "--data", self._folder / "data", "--http", self._address, "--definitions"]
        with (
            Forked("railgun", [*words, self._definitions], cwd=ROOT, stderr=subprocess.DEVNULL) as process,
            contextlib.ExitStack() as stack,
        ):
            stack.callback(process.kill)
            with self._working:
                while not (self._is_over or (kill_at is not None and self._work_done >= kill_at)):
                    self._working.wait(0.2)
                    assert process.poll() is None, "the server ended by itself"
            time.sleep(self._random.uniform(0, 0.02))
        self.kills += kill_at is not None
