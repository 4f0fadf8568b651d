"""The outcome of a bench as JSON values for programs."""

import math
from typing import Any

from railgun.measuring.bench import Outcome
from railgun.measuring.phases import TaskLoad


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as JSON values. Times are in the unit of their names, sizes in bytes."""
    job = outcome.job
    return {
        "stream": job.stream.name,
        "files": [str(each) for each in job.events],
        "machine": outcome.machine,
        "events": _events(outcome),
        "filling": _filling(outcome),
        "full_speed": _full_speed(outcome),
        "single_events": _single_events(outcome),
        "memory": {"process_bytes": outcome.process_bytes, "tasks_bytes": outcome.tasks_bytes},
        "disk": {
            "event_bytes": _rounded(outcome.full_speed.stored_bytes_per_event, 1),
            "state_bytes": outcome.state_bytes,
            "retention_ms": job.stream.retention_ms,
            "year_events": round(outcome.year_events),
            "year_bytes": _rounded(outcome.year_bytes),
        },
        "peak": None if job.peak is None else peak(outcome, job.peak),
    }


def peak(outcome: Outcome, per_s: float) -> dict[str, Any]:
    """Return how many cores so many events per second need.

    cores: if they are processed in batches, as under load. cores_if_single: if each came alone; None if not known.
    partitions: the least number at which no task needs more than a core.
    """
    full = outcome.full_speed
    busiest = max(task.cpu_s for task in full.tasks) / full.events
    return {
        "events_per_s": per_s,
        "cores": round(per_s * full.cpu_s_per_event, 3),
        "cores_if_single": _times(per_s, outcome.paced.cpu_s_per_event, 3),
        "partitions": max(1, math.ceil(per_s * busiest)),
    }


def _events(outcome: Outcome) -> dict[str, Any]:
    sample, repeated = outcome.sample, outcome.repeated
    return {
        "read": sample.read,
        **sample.refusals.as_json(),
        "is_whole": sample.is_whole,
        "ignored": {file: list(columns) for file, columns in sample.ignored.items()},
        "used": len(sample.events),
        "round_ms": repeated.round_ms,
        "per_s": float(f"{repeated.per_s:.4g}"),
    }


def _filling(outcome: Outcome) -> dict[str, Any]:
    filling = outcome.filling
    return {
        "events": filling.events,
        "seconds": round(filling.seconds, 3),
        "reach_ms": filling.reach_ms,
        "reached_ms": filling.reached_ms,
        "is_full": filling.stopped_by is None,
        "stopped_by": filling.stopped_by,
    }


def _full_speed(outcome: Outcome) -> dict[str, Any]:
    full = outcome.full_speed
    return {
        "events": full.events,
        "seconds": round(full.seconds, 3),
        "events_per_s": round(full.events_per_s),
        "cpu_us": round(1e6 * full.cpu_s_per_event, 3),
        "background_cpu_us": round(1e6 * full.background_cpu_s / full.events, 3),
        "record_bytes": round(full.record_bytes_per_event, 1),
        "reply_bytes": round(sum(task.reply_bytes for task in full.tasks) / full.events, 1),
        "expiries_per_arrival": _rounded(full.expiries_per_event, 3),
        "tasks": [_task(outcome, task) for task in full.tasks],
    }


def _task(outcome: Outcome, task: TaskLoad) -> dict[str, Any]:
    return {
        "partitioner": task.partitioner,
        "events": task.events,
        "late": task.late,
        "duplicates": task.duplicates,
        "cpu_us": round(1e6 * task.cpu_s / max(1, task.events), 3),
        "stored_bytes": _rounded(task.stored_bytes, 1),
        "kept_ms": outcome.kept_ms(task),
        "edges": [
            {"behind_ms": delta, "crossed_per_event": round(crossed, 3)}
            for delta, crossed in task.crossed_per_event.items()
        ],
    }


def _single_events(outcome: Outcome) -> dict[str, Any]:
    paced = outcome.paced
    latencies = {name: getattr(paced, name) for name in ("p50_ms", "p99_ms", "p999_ms", "greatest_ms")}
    return {
        "rate": paced.rate,
        "events": paced.events,
        "seconds": round(paced.seconds, 3),
        "kept_up": paced.kept_up,
        "kept_rate": round(paced.kept_rate, 3),
        **{name: round(value, 4) if paced.kept_up else None for name, value in latencies.items()},
        "cpu_us": _times(1e6, paced.cpu_s_per_event, 1),
        "not_single": paced.not_single,
    }


def _times(factor: float, value: float | None, digits: int) -> float | None:
    return None if value is None else round(factor * value, digits)


def _rounded(value: float | None, digits: int = 0) -> float | None:
    return None if value is None else round(value, digits) if digits else round(value)
