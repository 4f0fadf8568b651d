"""Measures a workload. Values are compared with exact ones before and after speed is measured."""

import statistics
import sys
from collections.abc import Sequence

from bench.keeping import Figures, spread
from bench.workloads.catalog import SEED, Workload
from bench.workloads.exact import check, reach_ms
from bench.workloads.generated import GeneratedEvents
from railgun.catalog.definitions import load_definitions
from railgun.measuring.measured import MeasuredTasks
from railgun.measuring.phases import FullSpeed, at_full_speed, fill
from railgun.wording import number_text, span_text

_FILLING_S, _RUN_S, _RUN_LEAST_S = 180.0, 10.0, 0.2


class NotFullError(Exception):
    """The windows could not be filled in time, so fewer events would leave them than come."""


def measured(workload: Workload, scale: float, runs: int) -> Figures:
    """Return the figures of a workload. Raises WrongValuesError, NotFullError, MeasuringError and what tasks raise."""
    definitions = load_definitions(str(workload.definitions))
    text = workload.definitions.read_text(encoding="utf-8")
    (stream,) = definitions.streams.values()
    events = GeneratedEvents(stream, workload.blocks(scale, SEED), reach_ms(text))
    tasks = MeasuredTasks(stream, definitions.metrics_of(stream.name))
    try:
        filling = fill(tasks, events, _FILLING_S, _tell)
        if filling.stopped_by is not None:
            reached, reach = span_text(filling.reached_ms), span_text(filling.reach_ms)
            raise NotFullError(f"{workload.name}: {reached} of {reach} were filled ({filling.stopped_by})")
        compared = check(tasks, definitions, text, events)
        seconds = max(_RUN_LEAST_S, _RUN_S * scale)
        found = [at_full_speed(tasks, events, seconds, _tell) for _ in range(runs)]
        compared += check(tasks, definitions, text, events)
        state_bytes = tasks.state_bytes
    finally:
        tasks.close()
    return {
        **_figures(found),
        "state_bytes": state_bytes,
        "filled_events": filling.events,
        "compared_events": compared,
    }


def _figures(found: Sequence[FullSpeed]) -> Figures:
    stored = found[-1].stored_bytes_per_event
    expiries = found[-1].expiries_per_event
    return {
        **spread("events_per_s", [each.events_per_s for each in found]),
        **spread("cpu_us_per_event", [1e6 * each.cpu_s_per_event for each in found]),
        "record_bytes_per_event": statistics.median(each.record_bytes_per_event for each in found),
        "measured_events": sum(each.events for each in found),
        **({} if stored is None else {"stored_bytes_per_event": stored}),
        **({} if expiries is None else {"expiries_per_arrival": expiries}),
    }


def _tell(phase: str, seconds: float) -> None:
    print(f"  {phase}, for at most {number_text(seconds)} s", file=sys.stderr, flush=True)
