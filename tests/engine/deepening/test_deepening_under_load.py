"""Deepening beside a caller that never pauses: what follows gains on the tasks that answer, so it comes to its end."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from railgun.engine.engine import Engine
from railgun.registry import catalog_log
from tests.engine.deepening.test_deepening import (
    BEGIN,
    NOW,
    accepted_rows,
    built,
    history_rows,
    live,
    live_rows,
    reference,
    scored,
    through_the_log,
)
from tests.engine.test_history import START_MS, engine, rows

# More in a call than in a step that nothing presses.
_CALL_ROWS = 1_000
_DEADLINE_S = 120.0


@pytest.fixture(autouse=True)
def one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_log, "os", SimpleNamespace(urandom=bytes))


class Caller:
    """Scores table after table in a thread of its own, without a pause. tables: those that are answered."""

    def __init__(self, opened: Engine) -> None:
        self._opened = opened
        self._stopped = threading.Event()
        self._pattern = rows(0, _CALL_ROWS)
        self.tables: list[pa.Table] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    @contextmanager
    def calling(self) -> Iterator[None]:
        """While this goes on."""
        self._thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            self._thread.join()

    def _run(self) -> None:
        following = self._table(0)
        while not self._stopped.is_set():
            table, following = following, None
            self._opened.score_table("s", table)
            self.tables.append(table)
            following = self._table(len(self.tables))

    def _table(self, number: int) -> pa.Table:
        """The next of them: its events are the pattern's, at times and with ids of their own."""
        first = NOW + number * _CALL_ROWS
        at = pa.array(range(first, first + _CALL_ROWS), pa.int64())
        ids = pc.binary_join_element_wise("e", pc.cast(at, pa.string()), "")
        times = pc.add(pc.multiply(at, 500), START_MS)
        return self._pattern.set_column(0, "id", ids).set_column(1, "ts", times)


def test_it_ends_under_a_caller_that_never_pauses(tmp_path: Path) -> None:
    own = live_rows(BEGIN, NOW)
    live(tmp_path / "live")
    with engine(tmp_path / "live") as opened:
        caller = Caller(opened)
        with caller.calling():
            built(tmp_path / "live", opened)
            installing = threading.Thread(target=opened.deepen, args=("s",), daemon=True)
            installing.start()
            installing.join(_DEADLINE_S)
            assert not installing.is_alive(), opened.deepening("s")
        assert opened.deepening("s") is None
        with reference(tmp_path / "log", through_the_log(history_rows(), accepted_rows(own))) as wanted:
            for table in caller.tables:
                wanted.score_table("s", table)
            after = caller._table(len(caller.tables)).slice(0, 300)
            assert scored(opened, after).equals(scored(wanted, after))
