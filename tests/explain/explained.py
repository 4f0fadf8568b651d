"""Definitions and their explanation, for the tests of every form of it."""

from railgun.catalog.definitions import parse_definitions
from railgun.explain.analysis import Home, explain_stream
from railgun.explain.explanation import Explanation, PartitionerPlan

DEFINITIONS = '''
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card", "merchant", "*"]
partitions = 4

[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
merchant = "string"
amount = "double"
online = "boolean"

[[metrics]]
sql = """SELECT count(*) AS n_7d, sum(amount) AS sum_7d, avg(amount) AS avg_7d, stddev(amount) AS dev_7d
         FROM payments WHERE amount > 0 GROUP BY card OVER SLIDING 7 DAYS"""
[[metrics]]
sql = """SELECT count(*) AS n_before, prev(merchant) AS prev_before, count_distinct(merchant) AS places_before
         FROM payments WHERE amount > 0 GROUP BY card OVER SLIDING 7 DAYS DELAYED BY 7 DAYS"""
[[metrics]]
sql = """SELECT count(*) AS n_today, max(amount) AS max_today
         FROM payments WHERE online GROUP BY card, merchant OVER TUMBLING 1 DAY"""
[[metrics]]
sql = 'SELECT first(merchant) AS first_of_all FROM payments OVER INFINITE'
'''

# The event itself left out, conditions of items, and a metric over others: what shares with what has neither.
CONSTRUCTS = (
    DEFINITIONS.partition("[[metrics]]")[0]
    + '''
[[metrics]]
sql = """SELECT sum(amount) AS sum_1h, count(*) FILTER (WHERE online) AS online_1h
         FROM payments WHERE amount > 0 GROUP BY card OVER SLIDING 1 HOUR"""
[[metrics]]
sql = """SELECT avg(amount) AS avg_before, count(*) FILTER (WHERE online) AS online_before
         FROM payments WHERE amount > 0 GROUP BY card OVER SLIDING 1 HOUR EXCLUDE CURRENT"""
[[metrics]]
sql = "SELECT max(amount) AS most_online FROM payments WHERE amount > 0 AND online GROUP BY card OVER SLIDING 1 HOUR"
[[metrics]]
sql = "DERIVE amount / avg_before AS times_avg, online_1h - online_before AS is_online FROM payments"
'''
)


def explained(text: str = DEFINITIONS) -> Explanation:
    """The explanation of a definitions file's text."""
    definitions = parse_definitions(text)
    return Explanation(
        tuple(
            explain_stream(
                stream,
                [
                    Home(
                        name,
                        stream.partitions_of(name),
                        [each.resolved for each in definitions.metrics_of(stream.name) if each.home == name],
                    )
                    for name in stream.partitioners
                ],
                definitions.derived_of(stream.name),
            )
            for stream in definitions.streams.values()
        )
    )


def by_card() -> PartitionerPlan:
    """The plan of the partitioner that most of DEFINITIONS' metrics live at."""
    return explained().streams[0].partitioners[0]
