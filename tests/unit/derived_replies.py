"""Derived metrics in the replies of the tests' front-end: a real one's parts compute them from the tasks' answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from frontend.exchange.gathered import Gathered
from frontend.exchange.timeline import Timeline
from railgun.catalog.catalog import StreamEntry
from railgun.ingest.accepted import Row
from railgun.plan.result_block import NO_METRICS
from railgun.wire.encode import encode_values
from railgun.wire.reply import ReplyBatch
from railgun.wire.schema import Schema
from tests.oracle.values import json_value


@dataclass(frozen=True)
class DerivedReply:
    """values: of the derived metrics that a reply names, as JSON has them. warming, partial: what it says of these."""

    values: Mapping[str, Any]
    warming: tuple[str, ...]
    partial: Mapping[str, int]


class Deriving:
    """Computes the derived metrics of a stream's replies. entry: the stream as the catalogue was read last."""

    def __init__(self, entry: StreamEntry) -> None:
        self._place = max(each.dropped or each.added for each in entry.registered)
        self._timeline = Timeline(entry, self._place)

    def of(
        self, event: Sequence[Any], schema: Schema, answers: Mapping[str, tuple[ReplyBatch, int]]
    ) -> DerivedReply:
        """What a reply says of derived metrics.

        event: values of the schema's fields.  answers: by partitioner, the reply record and the row in it.
        """
        gathered = {name: _one_row(*answer) for name, answer in answers.items()}
        named = self._timeline.named([each.sets[0] for each in gathered.values()], (), self._place)
        chosen = {name: each.chosen(None, 0, NO_METRICS) for name, each in gathered.items()}
        row = Row("", 0, len(event), encode_values(event), ())
        found = named.derived.answers([row], schema, chosen)
        if found is None:
            return DerivedReply({}, (), {})
        values = {name: json_value(column.value(0)) for name, column in found.block().columns().items()}
        partial = {name: bound_ms for name, bound_ms, rows in found.partials if len(rows)}
        return DerivedReply(values, found.warming_sets[int(found.warming[0])], partial)


def _one_row(batch: ReplyBatch, row: int) -> Gathered:
    gathered = Gathered(1)
    gathered.expect(None)
    gathered.gather(batch, row, row + 1, np.zeros(1, np.int64))
    return gathered
