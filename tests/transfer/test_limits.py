"""A donor's limits: fetches at once, and bytes in a second."""

import asyncio

from railgun.transfer.limits import FetchSlots, Rate


def test_two_fetches_are_served_at_once() -> None:
    now_s = 0.0
    slots = FetchSlots(lambda: now_s)
    assert [slots.enter(each) for each in "abca"] == [True, True, False, True]
    for each in "aab":
        slots.leave(each)
    assert not slots.enter("c")
    slots.end("a")
    assert slots.enter("c")


def test_a_fetch_that_is_silent_gives_its_place_away_unless_a_request_is_under_way() -> None:
    now_s = 0.0
    slots = FetchSlots(lambda: now_s)
    assert slots.enter("a")
    assert slots.enter("b")
    slots.leave("b")
    now_s = 29.0
    assert not slots.enter("c")
    now_s = 30.0
    assert slots.enter("c")
    assert not slots.enter("d")
    # The end of a fetch that has lost its place.
    slots.leave("b")


def test_the_rate_counts_for_all_together() -> None:
    now_s, slept = 5.0, list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    rate = Rate(1_000, lambda: now_s, sleep)
    for _ in range(4):
        asyncio.run(rate.take(500))
    assert slept == [0.5, 1.0]
    # Nothing was sent for a while, but half a second alone is made up for.
    now_s = 60.0
    for _ in range(3):
        asyncio.run(rate.take(500))
    assert slept == [0.5, 1.0, 0.5]
    assert rate.chunk_bytes(1 << 20) == 250
    unlimited = Rate(0, lambda: now_s, sleep)
    asyncio.run(unlimited.take(1 << 30))
    assert (len(slept), unlimited.chunk_bytes(1 << 20)) == (3, 1 << 20)
