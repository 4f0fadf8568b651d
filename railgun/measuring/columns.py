"""Joins columns of events, and makes ids that differ from round to round."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from railgun.wire.columns import REF_LENGTH_BITS, Column, EventColumns

_BITS = np.uint64(REF_LENGTH_BITS)
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
# `~` and six hexadecimal digits. Ids come again after 16 million rounds: no memory of duplicates reaches back so far.
_MARK = ord("~")
_PLACES = np.arange(20, -1, -4)


def joined(blocks: Sequence[EventColumns]) -> EventColumns:
    """Return the events of several blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    fields = zip(*(block.fields for block in blocks))
    return EventColumns(
        _joined([block.ids for block in blocks]),
        np.concatenate([block.times for block in blocks]),
        tuple(_joined(columns) for columns in fields),
    )


def _joined(columns: Sequence[Column]) -> Column:
    nulls = None
    if any(column.nulls is not None for column in columns):
        nulls = np.concatenate(
            [np.zeros(len(each.words), np.uint8) if each.nulls is None else each.nulls for each in columns]
        )
    if columns[0].heap is None:
        return Column(columns[0].type, np.concatenate([column.words for column in columns]), nulls)
    heaps = [column.heap for column in columns if column.heap is not None]
    starts = np.cumsum([0, *(len(heap) for heap in heaps[:-1])]).astype(np.uint64) << _BITS
    words = np.concatenate([column.words + start for column, start in zip(columns, starts)])
    return Column(columns[0].type, words, nulls, np.concatenate(heaps))


def marked(texts: Column, rounds: NDArray[np.int64]) -> Column:
    """Return texts without nulls, each with its round behind it: `a17~00002f`. The same text differs by round."""
    assert texts.heap is not None
    starts, lengths = (texts.words >> _BITS).view(np.int64), texts.lengths_bytes()
    ends = np.cumsum(lengths + 1 + len(_PLACES))
    marks_at = ends - 1 - len(_PLACES)
    heap = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    before = np.cumsum(lengths) - lengths
    each = np.arange(int(lengths.sum()))
    heap[each + np.repeat(marks_at - lengths - before, lengths)] = texts.heap[
        each + np.repeat(starts - before, lengths)
    ]
    heap[marks_at] = _MARK
    heap[(marks_at + 1)[:, None] + np.arange(len(_PLACES))] = _DIGITS[rounds[:, None] >> _PLACES & 15]
    words = ((ends - lengths - 1 - len(_PLACES)) << REF_LENGTH_BITS | (lengths + 1 + len(_PLACES))).view(
        np.uint64
    )
    return Column(texts.type, words, None, heap)
