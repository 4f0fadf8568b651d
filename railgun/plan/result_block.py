"""Results of many metrics as matrices, on the way from tasks to the JSON of replies.

If there are few events and many metrics, the work that is done once per metric takes most of the time. So the results
of all metrics are kept in a few matrices, not in an array for each metric. `Answers` (railgun/ingest/answers.py) makes
a block of what tasks in this process answer, and `frontend/exchange/gathered.py` of records of replies.
`railgun/ingest/replies.py` reads blocks.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railgun.language.types import Kind, Type
from railgun.plan.outputs import MetricColumn, is_wide


@dataclass(frozen=True, slots=True, eq=False)
class ResultForm:
    """The metrics of a block, and where their results are in it. Made once for many blocks and compared by identity.

    names, types: by metric, its name and the type of its results.
    wide: int64[...], the indexes of metrics whose results take two words.
    strings: the indexes of metrics whose results are strings.
    """

    names: tuple[str, ...]
    types: tuple[Type, ...]
    wide: NDArray[np.int64]
    strings: tuple[int, ...]

    @classmethod
    def of(cls, metrics: Iterable[tuple[str, Type]]) -> "ResultForm":
        """Return the form of metrics, given by name and type of result."""
        listed = tuple(metrics)
        types = tuple(type_ for _, type_ in listed)
        wide = [place for place, type_ in enumerate(types) if is_wide(type_)]
        strings = tuple(place for place, type_ in enumerate(types) if type_.kind is Kind.STRING)
        return cls(tuple(name for name, _ in listed), types, np.array(wide, np.int64), strings)

    def __len__(self) -> int:
        return len(self.names)


NO_METRICS = ResultForm.of(())


def slice_or_array(indexes: list[int]) -> NDArray[np.int64] | slice:
    """Return indexes of rows as a slice if they are evenly spaced, else as an array. A slice copies no rows."""
    assert min(indexes, default=0) >= 0
    step = indexes[1] - indexes[0] if len(indexes) > 1 else 1
    first, after = (indexes[0], indexes[-1] + 1) if indexes else (0, 0)
    if step > 0 and indexes == [*range(first, after, step)]:
        return slice(first, after, step)
    return np.array(indexes, np.int64)


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """Results of m metrics for n records.

    form: which metrics these are.
    low: uint64[m, n], the only word of each result, or the lower one of two.
    high: uint64[w, n], the upper words of the form's w `wide` metrics, in their order.
    nulls: uint8[m, n], 1 if a result is null; its words may then be anything.
    heap: uint8[...], the bytes of strings. The word of a string is offset << 24 | length.
    """

    form: ResultForm
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    nulls: NDArray[np.uint8]
    heap: NDArray[np.uint8]

    @classmethod
    def nothing(cls, form: ResultForm, n: int) -> "ResultBlock":
        """Return a block whose results are all null."""
        low, high = np.zeros((len(form), n), np.uint64), np.zeros((len(form.wide), n), np.uint64)
        return cls(form, low, high, np.ones((len(form), n), np.uint8), np.zeros(0, np.uint8))

    def rows(self, which: NDArray[np.int64] | slice) -> "ResultBlock":
        """Return a block of only these records, in this order. It shares the heap."""
        return ResultBlock(
            self.form, self.low[:, which], self.high[:, which], self.nulls[:, which], self.heap
        )

    def columns(self) -> dict[str, MetricColumn]:
        """Return each metric's results by name."""
        high = dict(zip(self.form.wide.tolist(), self.high))
        return {
            name: MetricColumn(
                name, type_, _words(self.low[place], high.get(place)), self.nulls[place], self.heap
            )
            for place, (name, type_) in enumerate(zip(self.form.names, self.form.types))
        }


def _words(low: NDArray[np.uint64], high: NDArray[np.uint64] | None) -> NDArray[np.uint64]:
    return low.reshape(-1, 1) if high is None else np.stack((low, high), axis=1)
