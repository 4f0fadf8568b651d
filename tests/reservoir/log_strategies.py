"""Seeded logs for tests that need many events rather than small ones."""

from random import Random

from tests.reservoir.event_log import INT64_MIN, EventLog, Record


def seeded_log(
    seed: int, n: int, lateness: int = 20, spread: tuple[int, int] = (-25, 6), name_max: int = 40
) -> EventLog:
    """n records whose times run with the clock, spread around it."""
    random, log = Random(seed), EventLog(lateness)
    for _ in range(n):
        now = log.clock if log.clock > INT64_MIN else 1_000
        log.add(
            Record(
                now + random.randint(*spread),
                random.random() < 0.9,
                random.choice([None, 0, random.getrandbits(60)]),
                random.choice([None, "", "ab", "é" * random.randint(1, name_max)]),
                random.randint(0, 9),
            )
        )
    return log
