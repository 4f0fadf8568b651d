"""The simulator catches mistakes that are planted into the product."""

from pathlib import Path

import pytest

from tests.simulator import canaries
from tests.simulator.seeds import run_seed
from tests.simulator.simulation import Broken

_MOST_SEEDS = 60


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("plant", "caught", "first_seed"),
    [
        (canaries.silent_copies_follow_the_end, "every event is answered", 0),
        # Few seeds have a checkpoint just then: 74 does.
        (canaries.checkpoints_pass_replies, "every event is answered", 72),
        (canaries.failed_copies_report_their_position, "every event is answered", 0),
        (canaries.ended_units_have_replied, "every event is answered", 0),
        (canaries.copies_never_stop, "of which one answers", 0),
        (canaries.unseen_topics_are_gone, "every event is answered", 0),
        (canaries.everybody_begins, "quiet|of which one answers", 0),
        (canaries.copies_share_a_node, "two copies of .* on one node", 0),
    ],
)
def test_a_planted_mistake_is_caught(
    plant: canaries.Plant, caught: str, first_seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(Broken, match=caught):
        _run_all(tmp_path, first_seed)


def _run_all(folder: Path, first_seed: int) -> None:
    for seed in range(first_seed, first_seed + _MOST_SEEDS):
        run_seed(folder / str(seed), seed)
