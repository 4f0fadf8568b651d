"""A ring: how many events it takes and holds, and which."""

from typing import Any

import msgspec
import pytest

from frontend.access.masks import UNMASKED
from frontend.problems import problem
from frontend.samples.ring import LOOKED_MAX, OVERHEAD_BYTES, PER_SECOND_MAX, Ring, Sample
from railgun.ingest.replies import Reply

PLAIN = Reply("a", 1, {})
LATE = Reply("a", 1, {}, late={"card": "discarded"})
DUPLICATE = Reply("a", 1, {}, duplicate=["card"])
PARTIAL = Reply("a", 1, {}, missing=["card"])
REFUSED = problem(422, "no")
WARMING = Reply("a", 1, {}, warming=["n"])


def sample(size_bytes: int = 10) -> Sample:
    return Sample(1, b"", 200, b"x" * size_bytes, None, size_bytes, UNMASKED, 0)


def numbers(ring: Ring, limit: int = 1_000, after: int = 0) -> list[int]:
    return [each.number for each in ring.newest(limit, after)]


def test_it_holds_the_last_ones_the_newest_first() -> None:
    ring = Ring(1, 3, 1 << 20)
    for _ in range(5):
        ring.put([sample()])
    assert numbers(ring) == [5, 4, 3]
    assert numbers(ring, limit=2) == [5, 4]
    assert numbers(ring, after=3) == [5, 4]
    assert numbers(ring, after=5) == []
    ring.put([sample() for _ in range(9)])
    assert numbers(ring) == [14, 13, 12]


def test_its_bytes_are_bounded_too() -> None:
    ring = Ring(1, 100, 10 * (OVERHEAD_BYTES + 1_000))
    ring.put([sample(1_000) for _ in range(25)])
    assert numbers(ring) == list(range(25, 15, -1))
    ring.put([sample(5_000)])
    held = ring.newest(100, 0)
    assert held[0].number == 26
    assert sum(each.held_bytes for each in held) <= 10 * (OVERHEAD_BYTES + 1_000) - 400
    ring.put([sample(1 << 20)])
    assert numbers(ring) == []


def test_of_a_second_it_takes_some_and_the_marked_ones_beside_them() -> None:
    ring = Ring(1, 100, 1 << 20)
    taken = [len(ring.choose([PLAIN], 5.0 + at / 100)) for at in range(99)]
    assert taken == [1] * PER_SECOND_MAX + [0] * (99 - PER_SECOND_MAX)
    marked = [LATE, DUPLICATE, PARTIAL, REFUSED]
    assert sum(len(ring.choose(marked, 5.99)) for _ in range(9)) == PER_SECOND_MAX
    assert ring.choose([*marked, PLAIN], 5.99) == []
    assert ring.choose([PLAIN, None, LATE], 6.01) == [0, 1, 2]


@pytest.mark.parametrize(
    ("answers", "rows"),
    [
        ([PLAIN] * 100, list(range(100 - PER_SECOND_MAX, 100))),
        ([LATE] + [PLAIN] * 100, [0, *range(101 - PER_SECOND_MAX, 101)]),
        # Of a batch only the last ones are looked at.
        ([LATE] + [PLAIN] * LOOKED_MAX, list(range(LOOKED_MAX + 1 - PER_SECOND_MAX, LOOKED_MAX + 1))),
        ([WARMING] * 30, list(range(30 - PER_SECOND_MAX, 30))),
        ([None], [0]),
        ([], []),
    ],
)
def test_of_a_batch_it_takes_the_last_ones(answers: list[Any], rows: list[int]) -> None:
    assert Ring(1, 100, 1 << 20).choose(answers, 1.0) == rows


def test_it_counts_all_that_it_could_choose_from() -> None:
    ring = Ring(1, 100, 1 << 20)
    assert ring.answered == 0
    for count in (1, 500, 0, 3):
        ring.choose([PLAIN] * count, 1.0)
    assert ring.answered == 504


def test_samples_are_small() -> None:
    """An event costs little more than its texts, so the overhead that is counted covers the object."""
    assert sample(0).held_bytes == OVERHEAD_BYTES
    assert msgspec.UNSET is PLAIN.late
