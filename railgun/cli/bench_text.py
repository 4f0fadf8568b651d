"""Puts the outcome of `railgun bench` into lines for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from railgun.cli.wording import duration_text, refusal_lines, size_text, table_lines
from railgun.measuring.bench import Outcome
from railgun.measuring.phases import Filling
from railgun.measuring.report import as_json
from railgun.wording import counted, listed, number_text, span_text

# Above this share of late events the files are probably not in the order of time.
_LATE_DOUBT = 0.05
# Above this load for each core other work decides about latencies.
_BUSY_SHARE = 0.5
_TASKS_ALONE = "the tasks alone, in batches; JSON, HTTP or Kafka take several times as much"


def bench_lines(outcome: Outcome) -> list[str]:
    """Return what was measured, of what, and what it does not say."""
    return [*_head(outcome), "", *table_lines(_rows(outcome)), "", *_notes(outcome)]


def _head(outcome: Outcome) -> list[str]:
    machine, sample, repeated = outcome.machine, outcome.sample, outcome.repeated
    versions = machine["versions"]
    which = "" if sample.is_whole else "the first "
    events = f"{which}{counted(len(sample.events), 'event')} over {span_text(repeated.round_ms)}"
    memory = f"{counted(machine['cores'], 'core')}, {size_text(machine['memory_bytes'])}"
    lines = [
        f"{outcome.job.stream.name}: {events}, {_rate(repeated.per_s)}, again and again",
        f"machine: {machine['processor']}, {memory}, load {machine['load_1min']} at the start",
        f"versions: Railgun {versions['railgun']}, Python {versions['python']}",
    ]
    if refused := sample.refusals.rows:
        lines.append(
            f"refused: {counted(refused, 'row')} of {sample.read:,}; by reason, each with its first:"
        )
        lines += refusal_lines(sample.refusals)
    for file, columns in sample.ignored.items():
        lines.append(f"{file}: {counted(len(columns), 'column')} not in the stream: {listed(columns, 8)}")
    return lines


def _rate(per_s: float) -> str:
    return f"{number_text(per_s)} a second" if per_s >= 1 else f"{number_text(per_s * 86_400)} a day"


def _rows(outcome: Outcome) -> list[tuple[str, str, str]]:
    found = as_json(outcome)
    full, disk = found["full_speed"], found["disk"]
    each = ", ".join(f"{task['partitioner']} {task['cpu_us']:,.2f}" for task in full["tasks"])
    stored, year = disk["event_bytes"], disk["year_bytes"]
    rows = [
        ("", "measured", "of what"),
        ("throughput", f"{full['events_per_s']:,} events/s", "one thread, in batches of 2,048"),
        (
            "processor time",
            f"{full['cpu_us']:,.2f} µs an event",
            f"{full['background_cpu_us']:,.2f} in background threads; by task {each}",
        ),
        *_single_rows(found["single_events"]),
        ("its records", f"{full['record_bytes']:,.0f} bytes", "in the logs of all tasks, not compressed"),
        (
            "on disk",
            "not known" if stored is None else f"{stored:,.1f} bytes an event",
            f"in all tasks; beside that {size_text(disk['state_bytes'])} of state",
        ),
        (
            "a year on disk",
            "not known" if year is None else size_text(year),
            f"{counted(disk['year_events'], 'event')} in all tasks, {_kept(full['tasks'], disk)}",
        ),
        (
            "memory",
            size_text(outcome.process_bytes),
            f"this process; {size_text(outcome.tasks_bytes)} more than before it had tasks",
        ),
    ]
    if (peak := found["peak"]) is not None:
        if_single = peak["cores_if_single"]
        single_cores = "" if if_single is None else f"{if_single:,.2f} if each came alone; "
        rows.append(
            (
                f"{number_text(peak['events_per_s'])} events/s",
                f"{peak['cores']:,.2f} cores",
                f"{_TASKS_ALONE}; {single_cores}{counted(peak['partitions'], 'partition')} at least",
            )
        )
    return rows


def _single_rows(single: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the rows about single events. What is not known has none: a note says why."""
    rows = []
    if single["kept_up"]:
        due = f"single events, {number_text(single['rate'])} due each second"
        longest = f"of {counted(single['events'], 'event')}; the longest {single['greatest_ms']:,.3f} ms"
        rows += [
            ("latency, p50", f"{single['p50_ms']:,.3f} ms", due),
            (
                "latency, p99",
                f"{single['p99_ms']:,.3f} ms",
                "from when it was due until its reply was encoded",
            ),
            ("latency, p99.9", f"{single['p999_ms']:,.3f} ms", longest),
        ]
    if single["cpu_us"] is not None:
        cpu = f"{single['cpu_us']:,.0f} µs"
        rows.append(("a single event", cpu, "of processor time, with waking up for it"))
    return rows


def _kept(tasks: Sequence[Mapping[str, Any]], disk: Mapping[str, Any]) -> str:
    """Return for how long the events of a year are kept."""
    if disk["retention_ms"] is None:
        return "kept for ever"
    spans = sorted({task["kept_ms"] for task in tasks})
    kept = " to ".join(dict.fromkeys(map(span_text, (spans[0], spans[-1]))))
    return f"of which the last {kept} are kept (retention {span_text(disk['retention_ms'])})"


def _notes(outcome: Outcome) -> list[str]:
    full, paced = outcome.full_speed, outcome.paced
    notes = _windows(outcome)
    if paced.not_single is not None:
        notes.append(f"single events: {paced.not_single}; try a smaller --rate")
    load, cores = outcome.machine["load_1min"], outcome.machine["cores"]
    if load > _BUSY_SHARE * cores:
        notes.append(
            f"machine: busy with something else (load {load} at the start, {counted(cores, 'core')})"
        )
    idle = [task.partitioner for task in full.tasks if not task.events]
    if idle:
        notes.append(f"no event has a value of {listed(idle)}, so nothing was done for it")
    late = max(task.late / max(1, task.events) for task in full.tasks)
    if late > _LATE_DOUBT:
        notes.append(f"late: {late:.0%} of the events. Are the files in the order in which events come?")
    names = ", ".join(task.partitioner for task in full.tasks)
    notes += [
        f"All this is of {counted(len(full.tasks), 'task')} ({names}; one partition each), fed by one thread in turn:",
        "decoding, windows, results, events and state on disk, checkpoints, replies. Reading and checking",
        "events, HTTP, Kafka, and copies in a cluster come on top.",
    ]
    return notes


def _windows(outcome: Outcome) -> list[str]:
    filling, share = outcome.filling, outcome.full_speed.expiries_per_event
    if share is None:
        return ["windows: none of them ever loses an event, so nothing expired"]
    expired = f"{share:.2f} expiries for each arrival"
    if filling.stopped_by is None:
        return [f"windows: full; {expired}, on average over their edges"]
    why = f"{filling.seconds:,.0f} s" if filling.stopped_by == "time" else "the free disk"
    reached = f"{span_text(filling.reached_ms)} ({counted(filling.events, 'event')})"
    return [
        f"windows: NOT full: they reach back {span_text(filling.reach_ms)}, and {why} filled {reached}",
        f"  {expired}, on average over their edges; once they are full it is 1, and costs more",
        f"  {_more(filling)}",
    ]


def _more(filling: Filling) -> str:
    """Return what would fill the windows."""
    if filling.stopped_by == "disk":
        return "more room on the disk fills more: free some, or set TMPDIR to a folder with more"
    share = filling.reached_ms / filling.reach_ms
    needed = duration_text(filling.seconds / share) if share > 0 else "much longer"
    return f"--seconds N with more seconds fills more; all of them take about {needed}"
