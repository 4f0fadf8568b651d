"""Writes metrics of the library with the names of a stream's fields: three to begin with, and others to choose from."""

from collections.abc import Sequence
from dataclasses import dataclass

from railgun.draft.fields import Candidate
from railgun.draft.naming import identifier, unused
from railgun.draft.vocabulary import AMOUNT, NO_AMOUNT
from railgun.language.printer import print_name
from railgun.language.types import parse_type

# The average of decimals has four more digits behind the point than they, and expressions have 18 at most.
_SCALE_MAX = 14


@dataclass(frozen=True, slots=True)
class Metrics:
    """Queries and DERIVEs: those that a draft has, and those that it has as comments."""

    active: tuple[str, ...]
    others: tuple[str, ...]


def amount_of(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the field of which sums say most; None if there is no number."""
    fit = [
        each
        for each in candidates
        if each.choice.is_numeric
        and each.may_be_active
        and (not each.is_key or not each.words.isdisjoint(AMOUNT))
        and each.words.isdisjoint(NO_AMOUNT)
    ]
    return max(fit, key=lambda each: (not each.words.isdisjoint(AMOUNT), each.share), default=None)


class _Writer:
    """Writes queries about one stream by one key, with names that nothing else has."""

    def __init__(self, stream: str, key: str | None, used: set[str]) -> None:
        self.stream, self._key, self._used = stream, key or "all", used
        self._group = "" if key is None else f" GROUP BY {print_name(key)}"

    def name(self, *parts: str) -> str:
        found = unused(identifier("_".join((self._key, *parts)), "metric"), self._used)
        self._used.add(found)
        return found

    def query(self, aggregate: str, name: str, window: str) -> str:
        return f"SELECT {aggregate} AS {name} FROM {print_name(self.stream)}{self._group} OVER {window}"

    def derived(self, expression: str, name: str) -> str:
        return f"DERIVE {expression} AS {name} FROM {print_name(self.stream)}"


def metrics_of(
    stream: str,
    key: Candidate | None,
    amount: Candidate | None,
    others: Sequence[Candidate],
    time: Candidate | None,
    used: set[str],
) -> Metrics:
    """Return the metrics for a stream.

    key: the partitioner; None for the one that keeps all events together.
    others: fields of which different values may be counted.
    used: the names of fields, to which those of metrics are added.
    """
    write = _Writer(stream, None if key is None else key.name, used)
    active = [write.query("count(*)", write.name(stream, "10m"), "SLIDING 10 MINUTES")]
    optional: list[str] = []
    if amount is None:
        active.append(write.query("count(*)", write.name(stream, "1d"), "SLIDING 1 DAY"))
        active.append(write.query("count(*)", write.name(stream, "7d"), "SLIDING 7 DAYS"))
    else:
        of = print_name(amount.name)
        usual, most = write.name("usual", amount.name), write.name("most", amount.name)
        window = "SLIDING 30 DAYS EXCLUDE CURRENT"
        active.append(write.query(f"sum({of})", write.name(amount.name, "1d"), "SLIDING 1 DAY"))
        active.append(write.query(f"avg({of})", usual, window))
        optional.append(write.query(f"max({of})", most, window))
        if parse_type(amount.choice.type).scale <= _SCALE_MAX:
            optional.append(write.derived(f"{of} / {usual}", write.name("times_usual", amount.name)))
    for other in others:
        name = write.name("distinct", other.name, "30d")
        optional.append(write.query(f"count_distinct({print_name(other.name)})", name, "SLIDING 30 DAYS"))
    if time is not None:
        of, before = print_name(time.name), write.name("before")
        optional.append(write.query(f"last({of})", before, "INFINITE EXCLUDE CURRENT"))
        optional.append(write.derived(f"({of} - {before}) / 1000", write.name("idle_s")))
    return Metrics(tuple(active), tuple(optional))
