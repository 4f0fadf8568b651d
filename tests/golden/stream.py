"""A stream that says everything a stream can say, and changes of every kind."""

from railgun.catalog.changes import (
    AddHistory,
    AddMetric,
    BeginDeepening,
    Change,
    Deepen,
    DropMetric,
    DropStream,
    PutStream,
    Warm,
)
from railgun.catalog.definitions import parse_definitions

DEFINITIONS = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card", "*"]
lateness = "2s"
late_policy = "discard"
max_future = "1s"
retention = "90d"
partitions = 4
record_replies = true
dedup_events = 5000
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
n = "long"
amount = "double"
ok = "boolean"
price = "decimal(12,2)"

[streams.bare]
[streams.bare.fields]
k = "string"

[[metrics]]
sql = "SELECT count(*) AS n_7d, sum(amount) AS sum_7d FROM payments WHERE amount > 0 GROUP BY card OVER SLIDING 7 DAYS"
"""
HISTORY, CUT_MS = "0123456789abcdef0123456789abcdef", 1_700_000_000_000


def changes() -> list[Change | Warm]:
    """One of every kind, in an order in which they may come."""
    definitions = parse_definitions(DEFINITIONS)
    first, second = definitions.metrics
    return [
        PutStream(1, definitions.streams["payments"], 1),
        PutStream(2, definitions.streams["bare"], 1),
        AddMetric(3, first),
        AddMetric(4, second),
        Warm("payments", "n_7d", 3),
        DropMetric(5, "payments", "sum_7d", 4),
        AddHistory(6, "payments", HISTORY, CUT_MS),
        AddHistory(7, "payments", HISTORY, CUT_MS, known_place=4),
        BeginDeepening(8, "payments", HISTORY),
        Deepen(9, "payments", HISTORY, CUT_MS),
        DropStream(10, "payments"),
    ]
