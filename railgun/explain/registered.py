"""The plan of a registered stream, with metrics that may come, as plain data."""

import json
from collections.abc import Sequence
from typing import Any

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.model import MetricDefinition
from railgun.explain.analysis import Home, explain_stream
from railgun.explain.explanation import Explanation
from railgun.explain.json import render_json


def explained(entry: StreamEntry, more: Sequence[MetricDefinition]) -> dict[str, Any]:
    """What `railgun explain --format json` says of the stream's metrics and `more`, those that are new by name."""
    metrics = {name: add.metric for name, add in entry.metrics.items()} | {each.name: each for each in more}
    stream = entry.stream
    homes = [
        Home(
            partitioner,
            stream.partitions_of(partitioner),
            [each.resolved for each in metrics.values() if each.home == partitioner],
        )
        for partitioner in stream.partitioners
    ]
    plan = explain_stream(stream.name, stream.types, homes)
    body: dict[str, Any] = json.loads(render_json(Explanation((plan,))))
    return body
