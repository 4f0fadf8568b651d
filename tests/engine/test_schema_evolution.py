"""Fifty changes of a stream one after another, each seen by the events after it alone; fifty that are refused."""

import random
from pathlib import Path

import pytest

import railgun
from railgun.registry.errors import DefinitionsError
from tests.engine.evolution import DEFINITIONS, ILLEGAL, Chain, Metrics, Redefined, Settings, play_chain
from tests.engine.player import EnginePlayer


@pytest.mark.parametrize("seed", range(3))
def test_fifty_steps(seed: int, tmp_path: Path) -> None:
    player = EnginePlayer(tmp_path / "data", "s")
    try:
        play_chain(player, lambda: [field.name for field in player.engine.streams()[0].fields], seed)
    finally:
        player.close()


def change(engine: railgun.Engine, wanted: Redefined | Settings | Metrics) -> None:
    match wanted:
        case Redefined():
            engine.apply(wanted.definitions)
        case Settings(body):
            engine.evolve("s", body)
        case Metrics(sql):
            engine.add_metrics("s", sql)


def test_fifty_illegal_changes(tmp_path: Path) -> None:
    """Each is refused with what is wrong, and changes nothing."""
    rng, chain = random.Random(1), Chain()
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(DEFINITIONS)
        before = engine.streams(), engine.metrics("s")
        for number, wanted in enumerate(ILLEGAL):
            with pytest.raises(DefinitionsError) as caught:
                change(engine, wanted)
            assert str(caught.value), number
            assert (engine.streams(), engine.metrics("s")) == before, number
            event = chain.event(rng)
            assert engine.score("s", event)["metrics"]["n"] == sum(
                each["card"] == event["card"] for each in chain.sent
            )
    with railgun.Engine(tmp_path / "data") as engine:
        assert (engine.streams(), engine.metrics("s")) == before
