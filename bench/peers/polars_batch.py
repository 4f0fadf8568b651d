"""Polars as the limit of a batch: the whole file in one query, with rolling expressions by time over each card."""

from collections.abc import Callable
from typing import Any

from bench.peers.packages import make_importable
from bench.peers.protocol import Task, serve


class Polars:
    """The query, run anew for each measurement."""

    def __init__(self, task: Task) -> None:
        make_importable()
        import polars as pl

        self._query = _query(pl, task)
        self._results = task.results

    def prepare(self, events: int) -> Callable[[], None]:
        """Return what runs the query."""
        return lambda: self._query.collect().write_csv(self._results, include_header=False)

    def close(self) -> None:
        """There is nothing to close."""


def _query(pl: Any, task: Task) -> Any:
    fields = {
        "tx_id": pl.String,
        "ts": pl.Int64,
        "card": pl.String,
        "merchant": pl.String,
        "amount": pl.Float64,
    }
    events = pl.scan_ndjson(task.events, schema=fields)
    if task.disorder_ms:
        events = events.sort("ts", maintain_order=True)
    found = [pl.col("tx_id")]
    for n, window_ms in enumerate(task.windows_ms):
        window = {"window_size": f"{window_ms}i", "closed": "right"}
        ones = pl.col("amount").is_not_null().cast(pl.Int64)
        found += [
            ones.rolling_sum_by("ts", **window).over("card").alias(f"c{n}"),
            pl.col("amount").rolling_sum_by("ts", **window).over("card").alias(f"s{n}"),
            pl.col("amount").rolling_mean_by("ts", **window).over("card").alias(f"a{n}"),
        ]
    return events.select(found)


if __name__ == "__main__":
    serve(Polars)
