"""Chooses the type of a field by the values that were observed, and says why, in shares and counts alone."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from railgun.draft.kinds import Kind, is_date, kind_of, lacks_offset
from railgun.draft.naming import words_of
from railgun.draft.observed import Place
from railgun.draft.vocabulary import AMOUNT, COUNT_OR_ID, ENTITY, TIME
from railgun.wire.path import Step
from railgun.wire.schema import DOUBLE, PRECISION_LIMIT, STRING_LIMIT_BYTES, FieldType, WireKind
from railgun.wire.values import LONG_MAX, LONG_MIN, MisfitError, reader
from railgun.wording import counted, usual_unit

_DECIMAL_TEXT = re.compile(r"-?[0-9]{1,15}\.([0-9]{1,6})", re.ASCII)
_NUMBER_TEXT = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?", re.ASCII)
_GROUPED_TEXT = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?", re.ASCII)
# A column of text of which most is numbers, and the rest a word or two, has words for null.
_MOSTLY, _WORDS_FOR_NULL = 0.8, 2
# What so many values of a column seem to be is said.
_MANY = 0.5


@dataclass(frozen=True, slots=True)
class Choice:
    """The type of a field.

    type: as definitions have it; empty if there is none.
    unit: of a timestamp; empty for what needs none.
    why: what the values are, or why no type is theirs.
    is_near_time: many values are times, of which some lack an offset. So it is text.
    """

    type: str
    unit: str = ""
    why: str = ""
    is_near_time: bool = False

    @property
    def is_numeric(self) -> bool:
        """Whether sums can be made of it."""
        return self.type in ("long", "double") or self.type.startswith("decimal")


def share_text(count: int, total: int) -> str:
    """Return a share as people say it: `all`, `97.3 %`, `2 of 1,000`."""
    if count == total:
        return "all"
    percent = 100 * count / total
    return f"{percent:.1f} %" if 1 <= percent <= 99 else f"{count:,} of {total:,}"


def fitting(place: Place) -> tuple[Choice, Place]:
    """Return the type for the values of a place, and the place with these values: a few may be of another kind."""
    if not TIME.isdisjoint(_words(place.path.steps)):
        for is_time in (_is_time_text, _is_counted):
            found = _without_misfits(place, is_time)
            if found is not None and found[0].type == "timestamp":
                return found
    choice = choice_of(place)
    if choice.type or len(place.kinds) == 1 or place.is_map:
        return choice, place
    for these, _ in _CHOOSERS:
        found = _without_misfits(place, lambda value, these=these: kind_of(value) in these)  # type: ignore[misc]
        if found is not None and found[0].type:
            return found
    return choice, place


def _without_misfits(place: Place, fits: Callable[[Any], bool]) -> tuple[Choice, Place] | None:
    """Return the type and the place for the values that fit; None if too many do not."""
    found = place.without_misfits(fits)
    if found is None:
        return None
    choice, misfits = choice_of(found), len(place.rows) - len(found.rows)
    if misfits:
        share = share_text(misfits, len(place.rows))
        choice = replace(choice, why=f"{choice.why}; another kind in {share}: such events are refused")
    return choice, found


def _is_time_text(value: Any) -> bool:
    return kind_of(value) is Kind.TIME_TEXT


def _is_counted(value: Any) -> bool:
    """Return whether a value is a number, or text that is one."""
    kind = kind_of(value)
    return kind in (Kind.INTEGER, Kind.NUMBER) or (
        kind is Kind.TEXT and _NUMBER_TEXT.fullmatch(str(value)) is not None
    )


def choice_of(place: Place) -> Choice:
    """Return the type for the values of a place, which has to be that of all."""
    kinds = set(place.kinds)
    if not kinds:
        return Choice("", why="null wherever it is there")
    if place.is_map:
        return Choice("", why=f"an object of {len(place.keys):,} different keys; name one with from")
    if kinds == {Kind.OBJECT}:
        left_out = counted(place.value_keys, "key")
        return Choice("", why=f"{left_out} in it seem to be values, and are left out; name one with from")
    time = _counted_time(place) if kinds <= _COUNTED else None
    if time is not None:
        return time
    for these, choose in _CHOOSERS:
        if kinds <= these:
            return choose(place)
    if len(kinds) > 1:
        mixed = " and ".join(
            f"{kind} in {share_text(n, len(place.rows))}" for kind, n in place.kinds.most_common()
        )
        return Choice("", why=f"of mixed kinds: {mixed}")
    return Choice("", why=_unreadable(place, kinds.pop()))


def _unreadable(place: Place, kind: Kind) -> str:
    if kind is Kind.ARRAY:
        return "an array; take an element with from, as in [0]"
    if kind is Kind.BYTES:
        return "bytes, or text that is no UTF-8"
    if kind is Kind.NOT_FINITE:
        return "no finite number, which is refused; null would be taken"
    if all(map(is_date, place.values)):
        return "a date or a time of the day, which no field can be; send text or a timestamp"
    return "of a kind that no field can be"


def _text(place: Place) -> Choice:
    texts = [str(value) for value in place.values]
    if place.kinds[Kind.TIME_TEXT] == len(texts):
        return Choice("timestamp", why="a time as RFC 3339 text")
    longest = max(len(text.encode()) for text in texts)
    if longest > STRING_LIMIT_BYTES:
        return Choice("", why=f"text of up to {longest:,} bytes; a string has at most {STRING_LIMIT_BYTES:,}")
    found = [_DECIMAL_TEXT.fullmatch(text) for text in texts]
    if AMOUNT & _words(place.path.steps) and all(found):
        scale = max(len(match[1]) for match in found if match)
        return Choice(f"decimal({PRECISION_LIMIT},{scale})", why="a decimal as text")
    return _near_time(texts, place.kinds[Kind.TIME_TEXT]) or Choice("string", why=_why_text(texts))


def _near_time(texts: Sequence[str], times: int) -> Choice | None:
    """Return the choice for text of which much is times; None for other text. times: how many are RFC 3339."""
    lacking = sum(map(lacks_offset, texts))
    if times + lacking < _MANY * len(texts):
        return None
    if not lacking:
        return Choice("string", why=f"text, but a time as RFC 3339 text in {share_text(times, len(texts))}")
    share = share_text(lacking, len(texts))
    why = f"text: times, which lack an offset in {share}; each needs one, as in 2026-01-05T10:00:00Z"
    return Choice("string", why=why, is_near_time=True)


def _why_text(texts: Sequence[str]) -> str:
    """Return what is said of text: that much of it is numbers, if so."""
    others = [text for text in texts if not _NUMBER_TEXT.fullmatch(text)]
    numbers = len(texts) - len(others)
    if not others or numbers < _MANY * len(texts):
        return "text"
    share = share_text(numbers, len(texts))
    if all(map(_GROUPED_TEXT.fullmatch, others)):
        return f"text, but digits in {share}: others have commas, which no number has"
    if numbers >= _MOSTLY * len(texts) and len(set(others)) <= _WORDS_FOR_NULL:
        return f"text, but digits in {share}: are others null?"
    return f"text, but digits in {share}"


def _counted_time(place: Place) -> Choice | None:
    """Return the choice for numbers, or numbers in text, that count a unit since 1970; None for others."""
    kinds, words = set(place.kinds), _words(place.path.steps)
    is_text = Kind.TEXT in kinds
    if is_text and (
        TIME.isdisjoint(words) or not all(_NUMBER_TEXT.fullmatch(str(each)) for each in place.values)
    ):
        return None
    unit = _unit([each if isinstance(each, int) else float(each) for each in place.values], words)
    if unit is None or not _all_are(place.values, FieldType(WireKind.TIMESTAMP, unit=unit)):
        return None
    if kinds == {Kind.INTEGER}:
        return Choice("timestamp", "" if unit == "ms" else unit, f"whole {unit} since 1970")
    how = "as text" if kinds == {Kind.TEXT} else "some as text" if is_text else "with a point"
    return Choice("timestamp", unit, f"{unit} since 1970, {how}")


def _whole(place: Place) -> Choice:
    values: Sequence[int] = place.values
    words = _words(place.path.steps)
    is_long = all(LONG_MIN <= value <= LONG_MAX for value in values)
    if is_long and words & (COUNT_OR_ID | ENTITY):
        return Choice("long", why="whole numbers, named as a count or an id")
    if _all_are(values, DOUBLE):
        return Choice("double", why="whole numbers")
    if is_long:
        return Choice("long", why="whole numbers, too long for doubles")
    return Choice("", why="whole numbers beyond 64 bits; send text")


def _number(place: Place) -> Choice:
    if _all_are(place.values, DOUBLE):
        return Choice("double", why="numbers")
    return Choice("", why="numbers that no double equals; send text")


def _decimal(place: Place) -> Choice:
    exponents = [int(Decimal(value).as_tuple().exponent) for value in place.values]
    scale = max(0, *(-each for each in exponents))
    if scale <= PRECISION_LIMIT:
        type_ = FieldType(WireKind.DECIMAL, PRECISION_LIMIT, scale)
        if _all_are(place.values, type_):
            return Choice(str(type_), why="decimals")
    return Choice("", why=f"decimals of more than {PRECISION_LIMIT} digits; send text")


def _time(place: Place) -> Choice:
    return Choice("timestamp", why="a time")


def _boolean(place: Place) -> Choice:
    return Choice("boolean", why="true or false")


_COUNTED = frozenset({Kind.TEXT, Kind.INTEGER, Kind.NUMBER})
_CHOOSERS: tuple[tuple[frozenset[Kind], Callable[[Place], Choice]], ...] = (
    (frozenset({Kind.TEXT, Kind.TIME_TEXT}), _text),
    (frozenset({Kind.INTEGER}), _whole),
    (frozenset({Kind.INTEGER, Kind.NUMBER}), _number),
    (frozenset({Kind.INTEGER, Kind.DECIMAL}), _decimal),
    (frozenset({Kind.TIME}), _time),
    (frozenset({Kind.BOOLEAN}), _boolean),
)


def _all_are(values: Sequence[Any], type_: FieldType) -> bool:
    """Return whether a field of a type takes all values."""
    read = reader(type_)
    try:
        for value in values:
            read(value)
    except MisfitError:
        return False
    return True


def _unit(values: Sequence[int | float], words: frozenset[str]) -> str | None:
    """Return the unit of numbers that are times, by their size and their name."""
    units = {usual_unit(value) for value in values}
    unit = units.pop()
    # Little else has so many digits, all of them of one century; ids of some makers have.
    is_ns = unit == "ns" and words.isdisjoint(COUNT_OR_ID | ENTITY)
    is_named = is_ns or not TIME.isdisjoint(words)
    return unit if not units and is_named else None


def _words(steps: Sequence[Step]) -> frozenset[str]:
    """Return the words of the last key of a path."""
    keys = [step for step in steps if isinstance(step, str)]
    return frozenset(words_of(keys[-1])) if keys else frozenset()
