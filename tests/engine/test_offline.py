"""Off-line runs: the table is what the oracle says, whatever the blocks; nothing is left behind."""

from pathlib import Path

import pytest

from railgun.catalog.definitions import parse_definitions
from railgun.engine import offline, offline_tasks
from railgun.engine.offline import OfflineRun
from railgun.wire.table_validator import TableValidator
from railgun.wire.validator import Roles
from tests.counts import seeds
from tests.engine.campaign import as_reply, as_table, kinds_of
from tests.engine.player import SMALLEST
from tests.oracle.compare import differences
from tests.oracle.steps import Score, perform
from tests.strategies.case import STREAM, oracle
from tests.strategies.generate import Profile
from tests.strategies.seeded import case


def played(seed: int, size: int, folder: Path | None) -> list[str]:
    drawn = case(seed, size, Profile(control_percent=0, derives=seed % 2 == 0))
    model = oracle(drawn)
    expected = [perform(model, step) for step in drawn.steps]
    known = parse_definitions(drawn.definitions)
    stream, metrics = known.streams[STREAM], known.metrics_of(STREAM)
    roles = Roles(stream.schema(1), stream.time, stream.id, stream.recorded_partitioners)
    validator = TableValidator(roles)
    found: list[str] = []
    derived = known.derived_of(STREAM)
    run = OfflineRun(stream, metrics, folder, SMALLEST if seed % 2 else None, derived=derived)
    try:
        first = 0
        for batch in drawn.batches():
            table = as_table(model.stream, [step.event for step in batch.steps if isinstance(step, Score)])
            scored = run.score(validator.admit(table.combine_chunks().to_batches()[0]).events)
            wanted = expected[first : first + len(batch.steps)]
            first += len(batch.steps)
            for row, reply in zip(scored.to_pylist(), wanted):
                assert reply is not None
                got = as_reply({**row, "warming": None, "partial": None}, reply, kinds_of(metrics, derived))
                found += differences(reply, got)
    finally:
        run.close()
    return found


@pytest.mark.parametrize("seed", seeds(range(2000, 2003), range(2000, 2006)))
def test_a_run_is_what_the_oracle_says(seed: int, tmp_path: Path) -> None:
    assert played(seed, 200, tmp_path / "run" if seed % 3 else None) == []


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(3000, 3300))
def test_a_long_run(seed: int, tmp_path: Path) -> None:
    assert played(seed, 400, tmp_path / "run") == []


def test_a_temporary_folder_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline.tempfile, "tempdir", str(tmp_path))
    assert played(1, 5, None) == []
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_used_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(offline_tasks, "open_task", lambda *_, **__: 1 / 0)
    known = parse_definitions(case(1, 1).definitions)
    with pytest.raises(ZeroDivisionError):
        OfflineRun(known.streams[STREAM], known.metrics_of(STREAM))
    assert list(tmp_path.iterdir()) == []
