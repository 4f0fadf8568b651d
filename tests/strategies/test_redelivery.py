"""That redelivered logs hold each event's original reply once, and repeat it until it is committed."""

from collections import Counter

from tests.oracle.records import EventRecord
from tests.oracle.task import TaskReply
from tests.strategies.case import task_logs
from tests.strategies.generate import Profile
from tests.strategies.redelivery import redelivered
from tests.strategies.seeded import case
from tests.strategies.source import SeededSource


def test_redelivery_changes_no_first_reply_and_repeats_it_until_committed() -> None:
    met: Counter[str] = Counter()
    for seed in range(60):
        (plain,) = task_logs(case(seed, 40, Profile(spread=False)))
        log = redelivered(plain, SeededSource(seed))
        first: dict[tuple[int, int], TaskReply] = {}
        committed: dict[int, int] = {}
        for record, reply in log.records:
            if not isinstance(record, EventRecord) or record.position is None:
                continue
            position = record.position
            where = position.partition, position.offset
            known = max(committed.get(position.partition, 0), position.committed)
            committed[position.partition] = known
            assert reply is not None
            if where not in first:
                first[where] = reply
                assert position.offset >= known
                met["first"] += 1
            elif position.offset >= known:
                assert reply == first[where]
                met["repeated"] += 1
            else:
                assert reply.duplicate
                met["settled"] += 1
        asked = [reply for _, reply in plain.records if reply is not None]
        assert len(first) == len(asked)
        assert Counter(map(repr, first.values())) == Counter(map(repr, asked))
    assert min(met[name] for name in ("first", "repeated", "settled")) > 50
