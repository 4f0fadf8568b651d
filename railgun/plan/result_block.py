"""Results of many metrics as matrices. For few events and many metrics, work that is done per metric dominates."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railgun.language.types import Kind, Type
from railgun.plan.outputs import MetricColumn, is_wide


@dataclass(frozen=True, slots=True, eq=False)
class ResultForm:
    """The metrics of a block, and where their results are in it. Made once for many blocks and compared by identity.

    wide: int64[...], the indexes of metrics whose results take two words.  strings: the indexes of those with strings.
    """

    names: tuple[str, ...]
    types: tuple[Type, ...]
    wide: NDArray[np.int64]
    strings: tuple[int, ...]

    @classmethod
    def of(cls, metrics: Iterable[tuple[str, Type]]) -> "ResultForm":
        """The form of metrics, given by name and type of result."""
        listed = tuple(metrics)
        types = tuple(type_ for _, type_ in listed)
        wide = [place for place, type_ in enumerate(types) if is_wide(type_)]
        strings = tuple(place for place, type_ in enumerate(types) if type_.kind is Kind.STRING)
        return cls(tuple(name for name, _ in listed), types, np.array(wide, np.int64), strings)

    def __len__(self) -> int:
        return len(self.names)


NO_METRICS = ResultForm.of(())


def chosen(places: list[int]) -> NDArray[np.int64] | slice:
    """The indexes of rows, as a slice if they are evenly spaced, else as an array."""
    assert min(places, default=0) >= 0
    step = places[1] - places[0] if len(places) > 1 else 1
    first, after = (places[0], places[-1] + 1) if places else (0, 0)
    if step > 0 and places == [*range(first, after, step)]:
        return slice(first, after, step)
    return np.array(places, np.int64)


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """Results of m metrics for n records.

    low uint64[m, n], and high uint64[w, n] of the form's `wide` metrics in their order; nulls uint8[m, n], 1 = null:
    the words there may be anything.
    heap uint8[...]: the bytes that strings' words (offset << 24 | length) point into.
    """

    form: ResultForm
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    nulls: NDArray[np.uint8]
    heap: NDArray[np.uint8]

    @classmethod
    def nothing(cls, form: ResultForm, n: int) -> "ResultBlock":
        """All null."""
        low, high = np.zeros((len(form), n), np.uint64), np.zeros((len(form.wide), n), np.uint64)
        return cls(form, low, high, np.ones((len(form), n), np.uint8), np.zeros(0, np.uint8))

    def rows(self, which: NDArray[np.int64] | slice) -> "ResultBlock":
        """Only these records, in this order; the heap is shared."""
        return ResultBlock(
            self.form, self.low[:, which], self.high[:, which], self.nulls[:, which], self.heap
        )

    def columns(self) -> dict[str, MetricColumn]:
        """Each metric's results by name."""
        high = dict(zip(self.form.wide.tolist(), self.high))
        return {
            name: MetricColumn(
                name, type_, _words(self.low[place], high.get(place)), self.nulls[place], self.heap
            )
            for place, (name, type_) in enumerate(zip(self.form.names, self.form.types))
        }


def _words(low: NDArray[np.uint64], high: NDArray[np.uint64] | None) -> NDArray[np.uint64]:
    return low.reshape(-1, 1) if high is None else np.stack((low, high), axis=1)
