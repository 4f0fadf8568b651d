"""Deepening of streams made up by chance: ties at the cut, late and repeated events, restarts, another one on top."""

import random
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from railgun.engine.engine import Engine
from railgun.registry import catalog_log
from railgun.task.replies import discard_replies
from railgun.wire.records import Records
from tests.counts import seeds
from tests.engine.deepening.deepened import Row, build_deepening, rows_of_tasks
from tests.engine.deepening.test_deepening import scored
from tests.engine.histories import chunks, state
from tests.engine.test_history import METRICS, SETTINGS, START_MS, STREAM, engine, rows, tasks

COMPUTED = """[streams.s.fields]
bin = { as = "CASE WHEN shop % 3 = 0 THEN SUBSTR(card, 1, 2) || CAST(shop AS string) END" }
"""
OF_BIN = """
[[metrics]]
sql = "SELECT count(*) AS of_bin, sum(amount) AS bin_total FROM s GROUP BY bin, shop OVER SLIDING 40 SECONDS"
"""
SEEDS = seeds(range(1, 4), range(1, 60))


@pytest.fixture(autouse=True)
def one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_log, "os", SimpleNamespace(urandom=bytes))


def made_up(chance: random.Random, events: int) -> pa.Table:
    """Events 0 to n, several at each time."""
    step_ms, each = chance.choice([(0, 1), (400, 1), (1_000, 3), (3_000, 9)]), chance.randrange(1, 4)
    times, now = [], START_MS
    for _ in range(events):
        now += step_ms[0] if chance.random() < 1 / each else 0
        now += chance.choice([0, 0, 1, 250])
        times.append(now)
    return rows(0, events).set_column(1, "ts", pa.array(times, pa.int64()))


def arrived(chance: random.Random, numbers: list[int]) -> list[int]:
    """In the order of a stream: some later than they were, some too late, some again."""
    keyed = sorted((n + (chance.choice([0, 0, 3, 40]) * chance.random()), n) for n in numbers)
    found = [n for _, n in keyed]
    for at in range(0, len(found), 17):
        found.insert(min(len(found), at + chance.randrange(1, 60)), found[at])
    return found


def through_the_logs(opened: Engine, rows_by_task: dict[tuple[str, int], list[Row]]) -> None:
    """What each task would be built of comes through its log instead."""
    members = opened._streams.live("s").hosts
    for member in members:
        who = member.task.identity
        records = Records.of([record for _, _, record in rows_by_task[who.partitioner, who.partition]])
        if len(records):
            with opened._lock, members.appending([(member, records)]):
                member.task.process(records, member.task.position, discard_replies)


def asked(opened: Engine) -> list[tuple[dict[str, object], int | None]]:
    """Values without an event: of each key its metrics, and the clock of the card's task. Offsets differ where history
    came through the log.
    """
    keys = [{"card": card, "shop": shop} for card in ("hot", "c0", "c3", "none") for shop in (0, 3, 9)]
    return [(found["metrics"], found["as_of"]["card"]["time"]) for found in opened.values("s", keys)]


@pytest.mark.parametrize("seed", SEEDS)
def test_it_is_as_if_history_had_come_through_the_log(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    total, begin, now = 1_400, chance.randrange(50, 300), chance.randrange(900, 1_100)
    lateness_ms = chance.choice([0, 500, 4_000, 20_000])
    text = STREAM.format(dedup=chance.choice([150, 100_000])).replace("4s", f"{lateness_ms}ms") + METRICS
    if chance.random() < 0.4:
        text = text.replace('id = "id"', 'id = "id"\nlate_policy = "discard"', 1)
    if chance.random() < 0.5:
        text = (
            text.replace('["card", "*"]', '["card", "bin", "*"]').replace("[streams.s.fields]\n", COMPUTED)
            + OF_BIN
        )
    table = made_up(chance, total)
    own, meanwhile = table.take(arrived(chance, list(range(begin, now)))), table.slice(now, 100)
    after = table.take(arrived(chance, list(range(now + 100, total))))
    cut_ms = table.column("ts")[chance.randrange(begin + 50, now)].as_py()
    with engine(tmp_path / "live") as opened:
        opened.apply(text)
        scored(opened, own)
        plan = opened.begin_deepening("s", None if chance.random() < 0.3 else cut_ms)
        scored(opened, meanwhile)
        before = asked(opened)
    history = table.take([n for n in range(now) if n < begin or chance.random() < 0.8])
    order = rows_of_tasks(plan, history)
    build_deepening(tmp_path / "live" / "backfill" / "s" / "tasks", plan, history, SETTINGS)
    with engine(tmp_path / "live") as opened, engine(tmp_path / "log") as wanted:
        wanted.apply(text)
        through_the_logs(wanted, order)
        # The task that answers is the one without the history, while one with it follows.
        assert asked(opened) == before
        opened.deepen("s")
        scored(wanted, meanwhile)
        assert asked(opened) == asked(wanted) != before
        assert scored(opened, after).equals(scored(wanted, after))
        assert asked(opened) == asked(wanted)
        with opened._lock, wanted._lock:
            for a, b in zip(tasks(opened), tasks(wanted), strict=True):
                assert a.admission.settings_in_force == b.admission.settings_in_force
                assert all(
                    x.drop("1:seq").equals(y.drop("1:seq")) for x, y in zip(chunks(a), chunks(b), strict=True)
                )
                assert state(a).keys() == state(b).keys()
