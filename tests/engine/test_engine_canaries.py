"""Bugs planted in the engine are caught by the campaign against the oracle."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from railgun.engine.engine_streams import EngineStreams
from railgun.ingest import replies as reply_forms
from railgun.ingest.answers import Answers
from railgun.ingest.intake import ParsedEvent, SingleTexts
from railgun.ingest.routing import Router
from railgun.language.resolve import ResolvedMetric
from railgun.plan.program import ProgramBuilder
from railgun.task.replies import Replies
from tests.engine.campaign import run

SEEDS = range(40)

take = Answers.take
partitions = Router.partitions
put_life = reply_forms._add_notes
place_node = ProgramBuilder._node


def rows_shifted(self: Answers, replies: Replies, rows: Any) -> None:
    """Answers of a batch end up one row off."""
    take(self, replies, rows if isinstance(rows, slice) else np.roll(rows, 1))


def other_partition(self: Router, values: Any) -> list[int]:
    """Single events go to another partition than the same ones in a table, and than before."""
    self.calls = getattr(self, "calls", 0) + 1
    found = partitions(self, values)
    return [max(0, place - self.calls % 2) if place >= 0 else place for place in found]


def late_forgotten(replies: Any, answers: Any, names: Any) -> None:
    """Nobody is told that an event was late."""
    put_life(replies, answers, names)
    for reply in replies:
        reply.late = msgspec.UNSET


def never_warm(self: EngineStreams, place: Any, due: Any) -> None:
    """Metrics that have filled are left warming."""


def node_excludes(
    self: ProgramBuilder, node: Any, fields: Any, metrics: Sequence[ResolvedMetric], prefix: str, kind: Any
) -> None:
    """Where one metric of a node leaves out the event that is answered, all of them do."""
    if any(metric.excludes_current for metric in metrics):
        metrics = [replace(metric, excludes_current=True) for metric in metrics]
    place_node(self, node, fields, metrics, prefix, kind)


def said_by_the_client(patch: pytest.MonkeyPatch) -> None:
    """The door takes a computed field from the event, where that has a key of its name."""
    admit, routed = SingleTexts.admit, Router.routed
    said: dict[str, Any] = {}

    def read(self: SingleTexts, text: Any, *more: Any) -> Any:
        said.clear()
        said.update(text.event if isinstance(text, ParsedEvent) else msgspec.json.decode(text))
        return admit(self, text, *more)

    def by_the_client(self: Router, values: Any) -> tuple[Any, ...]:
        return tuple(
            said.get(name, each) if computed >= 0 else each
            for name, computed, each in zip(self.partitioners, self._computed, routed(self, values))
        )

    patch.setattr(SingleTexts, "admit", read)
    patch.setattr(Router, "routed", by_the_client)


def expedited(self: EngineStreams, stream: str) -> bool:
    """Nothing is waited for."""
    return False


@pytest.mark.parametrize(
    "plant",
    [
        lambda patch: patch.setattr(Answers, "take", rows_shifted),
        lambda patch: patch.setattr(Router, "partitions", other_partition),
        lambda patch: patch.setattr(reply_forms, "_add_notes", late_forgotten),
        lambda patch: (
            patch.setattr(EngineStreams, "_write_warm", never_warm),
            patch.setattr(EngineStreams, "expedite", expedited),
        ),
        lambda patch: patch.setattr(ProgramBuilder, "_node", node_excludes),
        said_by_the_client,
    ],
    ids=["rows", "partition", "late", "warm", "exclusion", "computed"],
)
def test_it_is_caught(
    plant: Callable[[pytest.MonkeyPatch], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert any(run(seed, 100, tmp_path / str(seed)) for seed in SEEDS)
