"""Chooses the time, the id and the partitioner of a stream among the fields that it could have."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from railgun.draft.envelopes import Envelope
from railgun.draft.fields import Candidate
from railgun.draft.times import times_ms
from railgun.draft.vocabulary import ENTITY, ENUMERATION, ID, OWN_ID, TIME_BEST, TIME_GOOD, TIME_OTHER
from railgun.wire.path import KEY

# A role is taken by nothing that fewer events have.
_TIME_SHARE, _KEY_SHARE = 0.5, 0.5
_FUTURE_SHARE = 0.01
# What differs in more events is of one event each, unless its name says otherwise.
_DISTINCT_SHARE = 0.9
_MENTIONED = 3


@dataclass(frozen=True, slots=True)
class Role:
    """What was chosen, and what else could be, the likelier first."""

    taken: Candidate | None
    others: tuple[Candidate, ...] = ()

    @property
    def others_text(self) -> str:
        """The other candidates in words; empty if there are none."""
        names = ", ".join(each.name for each in self.others[:_MENTIONED])
        return f"also possible: {names}" if names else ""


def time_role(candidates: Sequence[Candidate], envelope: Envelope, now_ms: int) -> Role:
    """Return the time: of a change the time at which it was made, of other events the likeliest, of a record its own
    only if its event has none.
    """
    fit = [
        each
        for each in candidates
        if each.choice.type == "timestamp" and each.share >= _TIME_SHARE and not each.place.is_of_element
    ]
    inside = envelope.inside
    changed = {(*inside, "source", "ts_ms"): 2, (*inside, "ts_ms"): 1} if envelope.is_change else {}

    def score(each: Candidate) -> tuple[float, ...]:
        return -each.is_beside, changed.get(each.path.steps, 0), _time_score(each, now_ms)

    return _role(sorted(fit, key=score, reverse=True))


def _time_score(each: Candidate, now_ms: int) -> float:
    words = each.words
    times = times_ms(each)
    is_future = sum(time > now_ms for time in times) > _FUTURE_SHARE * len(times)
    good = 3 * (not words.isdisjoint(TIME_BEST)) + 2 * (not words.isdisjoint(TIME_GOOD))
    bad = 3 * (not words.isdisjoint(TIME_OTHER)) + 4 * is_future + (each.total > 1 and len(set(times)) == 1)
    return good - bad + 8 * each.share - 0.2 * len(each.path.steps)


def id_role(candidates: Sequence[Candidate]) -> Role:
    """Return the id: of the fields that differ in all events one that has the name of an id, but not that of something
    that may have many events. Others are named.
    """
    unique = [
        each
        for each in candidates
        if each.is_key and each.may_be_active and each.is_complete and each.place.distinct == each.total
    ]
    fit = [each for each in unique if not each.words.isdisjoint(ID | OWN_ID) and not _is_entity(each)]
    fit.sort(key=lambda each: (each.words == {"id"}, not each.words.isdisjoint(OWN_ID)), reverse=True)
    others = [each for each in unique if each not in fit]
    return Role(fit[0], (*fit[1:], *others)) if fit else Role(None, tuple(others))


def _is_entity(each: Candidate) -> bool:
    return not each.words.isdisjoint(ENTITY)


def partitioner_role(candidates: Sequence[Candidate], taken: Sequence[Candidate | None]) -> Role:
    """Return the field whose values have many events each, and are many. taken: what has another role."""
    fit = [
        each
        for each in candidates
        if each.is_key
        and each not in taken
        and (each.may_be_active or each.path.of_record == KEY)
        and each.share >= _KEY_SHARE
        and (_is_entity(each) or 1 < each.place.distinct <= _DISTINCT_SHARE * each.count)
    ]
    return _role(sorted(fit, key=_key_score, reverse=True))


def _key_score(each: Candidate) -> float:
    distinct, words = each.place.distinct, each.words
    score = each.share + min(1.0, math.log10(max(distinct, 1)) / 3)
    score += 2 * _is_entity(each) + (distinct < each.count) + 0.5 * (not words.isdisjoint(ID))
    score -= 2 * (not words.isdisjoint(ENUMERATION)) + 3 * each.is_beside
    # What is as often another thing as not is an id of the event, whatever its name is.
    return score - (distinct > _DISTINCT_SHARE * each.count and not words.isdisjoint(OWN_ID)) * 3


def _role(ranked: Sequence[Candidate]) -> Role:
    return Role(ranked[0], tuple(ranked[1:])) if ranked else Role(None)
