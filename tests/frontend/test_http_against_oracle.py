"""Random cases over HTTP, single events, arrays and lines, restarts and crashes: every reply is the oracle's."""

import json
from pathlib import Path

import pytest

from tests.counts import seeds
from tests.engine.player import SMALLEST
from tests.frontend.http_player import HttpPlayer, HttpRequests
from tests.oracle.compare import differences
from tests.oracle.steps import Reply, Score, Step, perform
from tests.strategies.case import STREAM, Case, oracle
from tests.strategies.generate import Profile
from tests.strategies.seeded import case


@pytest.mark.parametrize("seed", seeds(range(4), range(6)))
def test_a_case(seed: int, tmp_path: Path) -> None:
    drawn = case(
        seed + 700,
        150,
        Profile(explicit_warm=seed % 4 == 3, derives=seed % 5 != 0, asks_percent=8 if seed % 5 else 0),
    )
    assert play(drawn, HttpPlayer(tmp_path / "data", STREAM, SMALLEST if seed % 3 else None), seed % 3) == []


def play(drawn: Case, player: HttpRequests, form: int) -> list[str]:
    """form: 0 event by event, 1 arrays, 2 lines."""
    model = oracle(drawn)
    restarts = 0
    found: list[str] = []
    try:
        player.apply(drawn.definitions)
        for batch in drawn.batches():
            if batch.restart:
                restarts += 1
                player.restart(crash=restarts % 2 == 1)
            for together in runs(list(batch.steps), alone=form == 0):
                expected = [perform(model, step) for step in together]
                for wanted, reply in zip(expected, played(player, together, form), strict=True):
                    if wanted is not None:
                        found += [f"{together}: {line}" for line in differences(wanted, reply or {})]
                if found:
                    return found
    finally:
        player.close()
    return found


def runs(steps: list[Step], *, alone: bool) -> list[list[Step]]:
    """Steps one by one; events in a row together unless `alone`."""
    found: list[list[Step]] = []
    for step in steps:
        if not alone and isinstance(step, Score) and found and isinstance(found[-1][-1], Score):
            found[-1].append(step)
        else:
            found.append([step])
    return found


def played(player: HttpRequests, together: list[Step], form: int) -> list[Reply | None]:
    if len(together) == 1 or not isinstance(together[0], Score):
        return [perform(player, together[0])]
    events = [step.event for step in together if isinstance(step, Score)]
    return list(player.score_array(events) if form == 1 else player.score_lines(events))


def test_planted_difference_is_found(tmp_path: Path) -> None:
    """The comparison itself can fail: a reply that is changed on its way is told."""
    drawn = case(701, 40, Profile())

    class Lying(HttpPlayer):
        def score(self, event):  # type: ignore[no-untyped-def]
            reply = super().score(event)
            return json.loads(json.dumps(reply).replace("1", "2"))

    assert play(drawn, Lying(tmp_path / "data", STREAM), 0)
