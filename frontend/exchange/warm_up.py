"""Makes the code that handles events in a front-end compile or load before the first event comes."""

from frontend.exchange.streams import StreamIntake
from railgun.catalog.catalog import Catalog
from railgun.catalog.definitions import parse_definitions
from railgun.ingest.accepted import Correlation
from railgun.registry import evolution

_STREAM = """
[streams.warmup]
time = "ts"
partitioners = ["k", "n"]
partitions = 2
[streams.warmup.fields]
ts = "timestamp"
k = "string"
n = "long"
d = "double"
m = "decimal(9,2)"
b = "boolean"
"""
_NOW_MS = 1_700_000_000_000
_TEXT = b'{"ts": 1700000000000, "k": "k%d", "n": %d, "d": 0.5, "m": "1.50", "b": true}'
_FEW, _MANY = 1, 200


def warm_up() -> None:
    """Check events of a made-up stream, one alone and many at once, and make their records."""
    catalog = Catalog(evolution.missing(Catalog(), parse_definitions(_STREAM)))
    intake = StreamIntake(catalog.streams["warmup"])
    for count in (_FEW, _MANY):
        accepted = intake.take([_TEXT % (row, row) for row in range(count)], _NOW_MS)
        assert len(accepted) == count
        positions = [(0, row, 0) for row in range(count)]
        for correlation in (Correlation(), Correlation(1, 1, 1, positions)):
            accepted.task_batches(correlation)
