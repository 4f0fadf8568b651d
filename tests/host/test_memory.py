"""One limit of memory for all tasks of an engine."""

from pathlib import Path

import pytest

import railgun
from railgun.host.memory import MemoryShares, cache_bytes
from railgun.task.settings import MIB, TaskSettings

WHOLE = cache_bytes(TaskSettings())
TWO_BY_FOUR = """
[streams.{name}]
time = "ts"
id = "tx"
partitioners = ["card", "merchant"]
partitions = 4
[streams.{name}.fields]
tx = "string"
ts = "timestamp"
card = "string"
merchant = "string"
"""


def test_where_there_is_enough_each_task_gets_its_maxima() -> None:
    assert MemoryShares(TaskSettings(), 8 * WHOLE).take(6) == TaskSettings()


@pytest.mark.parametrize("tasks", [1, 2, 8, 40])
@pytest.mark.parametrize("limit_bytes", [1_000 * MIB, 4_000 * MIB])
def test_all_that_come_stay_within_the_limit(tasks: int, limit_bytes: int) -> None:
    shares = MemoryShares(TaskSettings(), limit_bytes)
    first, later = shares.take(tasks), shares.take(1)
    assert tasks * cache_bytes(first) + cache_bytes(later) <= limit_bytes
    assert later.row_cache_bytes >= MIB
    shares.give_back([first] * tasks)
    shares.give_back([later])
    assert shares.take(tasks) == first


def test_the_largest_caches_shrink_first_but_none_to_nothing() -> None:
    settings = TaskSettings(row_cache_bytes=512 * MIB, page_cache_bytes=32 * MIB, chunk_cache_bytes=1 << 14)
    some = MemoryShares(settings, 400 * MIB).take(1)
    assert some.row_cache_bytes == 300 * MIB - (64 + 64 + 32) * MIB - (1 << 14)
    assert (some.page_cache_bytes, some.block_cache_bytes) == (32 * MIB, 64 * MIB)
    little = MemoryShares(settings, 80 * MIB).take(1)
    assert little.chunk_cache_bytes == 1 << 14, "what is asked for is never exceeded"
    assert little.row_cache_bytes == pytest.approx(little.page_cache_bytes, abs=4)
    assert cache_bytes(little) <= 60 * MIB
    assert cache_bytes(MemoryShares(TaskSettings(), MIB).take(1)) == 8 * MIB


def test_copies_that_may_come_when_a_node_is_gone_are_left_a_share() -> None:
    shares = MemoryShares(TaskSettings(), 600 * MIB)
    first = shares.take(4, most=6)
    later = [shares.take(1, most=6) for _ in range(2)]
    assert cache_bytes(first) == 75 * MIB
    assert all(cache_bytes(each) >= cache_bytes(first) for each in later)
    assert 4 * cache_bytes(first) + sum(map(cache_bytes, later)) <= 600 * MIB


def test_an_engine_with_eight_tasks_and_eight_more(tmp_path: Path) -> None:
    limit_bytes = 400 * MIB

    def held(engine: railgun.Engine) -> dict[str, int]:
        found = {}
        for name in ("first", "second"):
            members = list(engine._streams.live(name).hosts)
            assert len(members) == 8
            found[name] = sum(cache_bytes(member.task.settings) for member in members)
            for member in members:
                assert member.task.table.stats().used_bytes <= member.task.settings.row_cache_bytes
        assert sum(found.values()) <= limit_bytes
        return found

    with railgun.Engine(tmp_path, durability="os", memory_limit_bytes=limit_bytes) as engine:
        engine.apply(TWO_BY_FOUR.format(name="first"))
        engine.apply(TWO_BY_FOUR.format(name="second"))
        before = held(engine)
        assert before["second"] < before["first"]
    with railgun.Engine(tmp_path, durability="os", memory_limit_bytes=limit_bytes) as engine:
        after = held(engine)
        assert after["first"] == after["second"], "a start divides anew"
        engine.drop_stream("first")
        engine.apply(TWO_BY_FOUR.format(name="first"))
        held(engine)
