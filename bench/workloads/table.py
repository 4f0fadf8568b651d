"""Writes the table of workloads from a run's file."""

from collections.abc import Iterator

from bench.found import Found, shown
from bench.kept_results import Results
from bench.pages import circumstances, not_run, table

_WITH_SPREAD = {"events_per_s": "events/s", "cpu_us_per_event": "processor µs of an event"}
_NUMBERS = {
    "record_bytes_per_event": "bytes of an event in logs",
    "stored_bytes_per_event": "in reservoirs",
    "expiries_per_arrival": "expiries for each arrival",
    "filled_events": "events that filled the windows",
    "compared_events": "compared events, all equal",
}
_STATE_BYTES, _STATE = "state_bytes", "MiB of state"


def text_of(results: Results) -> str:
    """Return the table as Markdown."""
    head = ["", *_WITH_SPREAD.values(), *_NUMBERS.values(), _STATE]
    rows = [[f"`{name}`", *_cells(Found(results, name))] for name in results.runs]
    return "\n".join([*table(head, rows), "", circumstances(results), *not_run(results)]) + "\n"


def _cells(found: Found) -> Iterator[str]:
    yield from map(found.with_spread, _WITH_SPREAD)
    for key in _NUMBERS:
        yield "" if found.get(key) is None else found.number(key)
    yield shown(found[_STATE_BYTES] / 2**20)
