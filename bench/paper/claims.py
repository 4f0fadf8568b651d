"""What the papers themselves say of their figures: their own machines, their own values.

They are what the text says. The curves of the figures have further values, which the text does not name.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of a paper.

    where: section and figure, and the paper if it is not Railgun's.  says: the statement.
    """

    where: str
    says: str


CLAIMS: dict[str, tuple[Claim, ...]] = {
    "fig9b": (
        Claim("section 5.2, figure 9b", "20 to 240 iterators by 10 to 120 windows, 500 events/s, by topics"),
        Claim(
            "section 5.2.1, figure 9b",
            "a cache of 220 chunks: little difference up to 210 iterators",
        ),
        Claim(
            "section 5.2.1, figure 9b",
            "at 240 iterators latencies rise: missed chunks, and garbage collection",
        ),
    ),
    "fig8": (
        Claim(
            "section 5.1",
            "sum per card over 60 minutes, 500 events/s, runs of 35 minutes, 5 of them left out",
        ),
        Claim(
            "section 5.1.1, figure 8", "Flink 1.11 cannot keep up with 500 events/s with hops of 10 s or less"
        ),
        Claim("section 5.1.1, figure 8", "Flink needs hops of a minute or more for 250 ms at p99.9"),
        Claim(
            "section 5.1.1, figure 8",
            "Railgun is faster than Flink with hops of a minute or less",
        ),
    ),
    "fig10": (
        Claim(
            "section 5.3", "one node of 8 units and 16 virtual cores: 25,000 events/s within 250 ms at p99.9"
        ),
        Claim("section 5.3.1, figure 10", "35 nodes: 750,000 events/s, where a slight loss begins"),
        Claim("section 5.3.1, figure 10", "50 nodes: 1,000,000 events/s, 20,000 for each node"),
    ),
    "rates": (
        Claim(
            "Structured Streaming, section 9.3, figure 7",
            "a map job that reads from Kafka, on one server of 4 cores",
        ),
        Claim(
            "Structured Streaming, section 9.3",
            "continuous mode: below 10 ms at half of the most that microbatch mode takes",
        ),
        Claim(
            "Structured Streaming, section 9.3",
            "continuous mode also takes slightly more: scheduling tasks costs microbatch mode latency",
        ),
    ),
    "recovery": (
        Claim(
            "StreamScope, section 7.5, figure 15",
            "a vertex of a join is made to fail, in production",
        ),
        Claim("StreamScope, section 7.5", "replication: its latency does not show the failure"),
        Claim(
            "StreamScope, section 7.5",
            "checkpoint: latency rises a little when one is taken; to recover, load it, repeat output, catch up",
        ),
        Claim(
            "StreamScope, section 7.5",
            "replay: no such rises, but a longer recovery, as its state is denser than the events it is made of",
        ),
        Claim("StreamScope, section 7.5", "in one production application 25 % of the vertices replay"),
    ),
    "fig9a": (
        Claim(
            "section 5.2, figure 9a", "windows of 5 minutes to 7 days, 103 fields, 500 events/s, by topics"
        ),
        Claim(
            "section 5.2.1, figure 9a",
            "the size makes no difference; p99.99 is 75 to 150 ms",
        ),
    ),
}

PAPER_RATES = ((1.0, 25_000.0), (35.0, 750_000.0), (50.0, 1_000_000.0))
"""Nodes and events/s that section 5.3 states."""
