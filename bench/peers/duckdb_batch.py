"""DuckDB as the limit of a batch: the whole file in one query, with window functions over a RANGE of times."""

from collections.abc import Callable

from bench.peers.packages import make_importable
from bench.peers.protocol import Task, serve

_COLUMNS = "{tx_id: 'VARCHAR', ts: 'BIGINT', card: 'VARCHAR', merchant: 'VARCHAR', amount: 'DOUBLE'}"


class DuckDb:
    """The query, run anew for each measurement."""

    def __init__(self, task: Task) -> None:
        make_importable()
        import duckdb

        self._connection = duckdb.connect(config={"temp_directory": str(task.folder)})
        self._query = _query(task)

    def prepare(self, events: int) -> Callable[[], None]:
        """Return what runs the query."""
        return lambda: self._connection.execute(self._query) and None

    def close(self) -> None:
        """Close the database, which is in memory."""
        self._connection.close()


def _query(task: Task) -> str:
    places = range(len(task.windows_ms))
    selected = ", ".join(f"count(*) OVER w{n}, sum(amount) OVER w{n}, avg(amount) OVER w{n}" for n in places)
    windows = ", ".join(
        f"w{n} AS (PARTITION BY card ORDER BY ts RANGE BETWEEN {window_ms} PRECEDING AND CURRENT ROW)"
        for n, window_ms in enumerate(task.windows_ms)
    )
    events = f"read_json('{task.events}', format = 'newline_delimited', columns = {_COLUMNS})"
    select = f"SELECT tx_id, {selected} FROM {events} WINDOW {windows}"
    return f"COPY ({select}) TO '{task.results}' (FORMAT csv, HEADER false)"


if __name__ == "__main__":
    serve(DuckDb)
