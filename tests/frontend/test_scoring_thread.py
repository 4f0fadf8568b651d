"""What the scoring thread takes first: small requests before large ones, the parts of one request in their order."""

import asyncio
import random
import threading

import pytest

from frontend.scoring.scoring_thread import SMALL_EVENTS_MAX, InOrder, Outcome, ScoringThread, Submission
from tests.counts import seeds

_PATIENCE_S = 30


def _submission(name: str, events: int, in_order: InOrder | None = None) -> Submission:
    texts = [f'"{name}"'.encode()] * events
    return Submission.of(name, texts, None, 1_000, reply=True, in_order=in_order)


async def _taken(submissions: list[Submission], abandoned: list[Submission]) -> list[Submission]:
    """The order in which submissions are scored that all came while the thread was at work."""
    found: list[Submission] = []
    is_busy, may_go_on = threading.Event(), threading.Event()

    def score(batch: list[Submission]) -> list[Outcome]:
        is_busy.set()
        assert may_go_on.wait(_PATIENCE_S)
        found.extend(batch)
        return [(each, None) for each in batch]

    thread = ScoringThread(asyncio.get_running_loop(), score)
    first = _submission("first", 1)
    thread.submit(first)
    assert is_busy.wait(_PATIENCE_S)
    for each in submissions:
        thread.submit(each)
    for each in abandoned:
        each.abandoned = True
    may_go_on.set()
    thread.close()
    assert found[0] is first
    return found[1:]


def test_small_requests_go_first() -> None:
    async def play() -> None:
        large, small = _submission("large", 1_000), _submission("small", SMALL_EVENTS_MAX)
        assert await _taken([large, small], []) == [small, large]

    asyncio.run(play())


@pytest.mark.parametrize("seed", seeds(range(20), range(50)))
def test_the_parts_of_a_request_are_taken_in_their_order(seed: int) -> None:
    rng = random.Random(seed)

    async def play() -> None:
        orders = [InOrder() for _ in range(4)]
        parts: list[list[Submission]] = [[] for _ in orders]
        for _ in range(60):
            request = rng.randrange(len(orders))
            events = rng.choice([1, SMALL_EVENTS_MAX, SMALL_EVENTS_MAX + 1, 1_024])
            parts[request].append(_submission(f"request {request}", events, orders[request]))
        left = [list(each) for each in parts]
        mixed = []
        while any(left):
            mixed.append(rng.choice([each for each in left if each]).pop(0))
        abandoned = rng.sample(mixed, 5)
        found = await _taken(mixed, abandoned)
        assert len(found) == len(mixed) - len(abandoned)
        for of_request in parts:
            wanted = [each for each in of_request if not each.abandoned]
            assert [each for each in found if each.in_order is of_request[0].in_order] == wanted
        assert [order.waiting for order in orders] == [0] * len(orders)

    asyncio.run(play())
