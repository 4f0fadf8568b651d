"""The simulator catches mistakes that are planted into the product."""

from pathlib import Path

import pytest

from tests.simulator import canaries
from tests.simulator.seeds import run_seed
from tests.simulator.simulation import Broken

_MOST_SEEDS = 60


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("plant", "caught"),
    [
        (canaries.silent_copies_follow_the_end, "every event is answered"),
        (canaries.checkpoints_pass_replies, "every event is answered"),
        (canaries.failed_copies_report_their_position, "every event is answered"),
        (canaries.copies_never_stop, "of which one answers"),
        (canaries.unseen_topics_are_gone, "every event is answered"),
        (canaries.everybody_begins, "quiet|of which one answers"),
        (canaries.copies_share_a_node, "two copies of .* on one node"),
    ],
)
def test_a_planted_mistake_is_caught(
    plant: canaries.Plant, caught: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(Broken, match=caught):
        _run_all(tmp_path)


def _run_all(folder: Path) -> None:
    for seed in range(_MOST_SEEDS):
        run_seed(folder / str(seed), seed)
