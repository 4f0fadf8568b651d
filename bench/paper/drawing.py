"""Draws the SVG of a figure from its file of results."""

from collections.abc import Callable, Iterator, Sequence

from bench.kept_results import Results
from bench.pages import circumstances
from bench.paper.claims import PAPER_RATES
from bench.paper.pace import QUANTILES, figure_of
from bench.paper.recovery import WAYS
from bench.paper.svg import Bars, Chart, Line, drawn
from bench.paper.windows_work import CACHES_BYTES, DEFAULT_CACHE_BYTES, LENGTHS
from bench.unit_cases import MIB


def values(results: Results, figure: str) -> Iterator[tuple[str, float]]:
    """Yield each part that has a figure, and its value."""
    for part in results.runs:
        if (value := figure_of(results, part, figure)) is not None:
            yield part, value


def _edges_chart(results: Results, figure: str, title: str, y_title: str) -> Chart:
    lines = []
    for cache_bytes in CACHES_BYTES:
        ending = f"_cache_{cache_bytes // MIB}"
        points = [
            (results.figures[f"{part}.edges"], value)
            for part, value in values(results, figure)
            if part.endswith(ending) and value > 0
        ]
        default = " (default)" if cache_bytes == DEFAULT_CACHE_BYTES else ""
        lines.append(Line(f"{cache_bytes // MIB} MiB{default}", points))
    return Chart(title, "different edges", y_title, lines)


def _edges(results: Results) -> list[Chart]:
    return [
        _edges_chart(results, "p50_ms", "Single events, p50, by the size of the chunk cache", "ms"),
        _edges_chart(results, "p999_ms", "Single events, p99.9, by the size of the chunk cache", "ms"),
        _edges_chart(results, "events_per_s", "Throughput in batches of 2,048", "events/s"),
    ]


def _lengths(results: Results) -> list[Chart]:
    names = {float(length.window_ms): name.split("_")[1] for name, length in LENGTHS.items()}
    fields = sorted({length.fields for length in LENGTHS.values()})

    def lines(figure: str, label: str) -> list[Line]:
        found = dict(values(results, figure))
        return [
            Line(
                f"{label}{count} fields",
                [
                    (float(length.window_ms), found[name])
                    for name, length in LENGTHS.items()
                    if length.fields == count and name in found
                ],
            )
            for count in fields
        ]

    latencies = [*lines("p50_ms", "p50, "), *lines("p99_ms", "p99, "), *lines("p999_ms", "p99.9, ")]
    speeds = lines("events_per_s", "")
    return [
        Chart("Single events, by the length of the window", "window", "ms", latencies, names),
        Chart("Throughput in batches of 2,048", "window", "events/s", speeds, names),
    ]


def _quantile_line(results: Results, part: str, label: str) -> Line:
    found = {key: figure_of(results, part, key) for key in QUANTILES}
    return Line(
        label, [(1 / (1 - QUANTILES[key]), value) for key, value in found.items() if value is not None]
    )


def _flink_label(results: Results, part: str) -> str:
    _, _, hop, backend = part.split("_")
    behind = ", falls behind" if part in results.not_run else ""
    return f"Flink, hop {hop}, {backend}{behind}"


def _error_lines(results: Results, of_flink: bool) -> Iterator[Line]:
    """Yield the errors of hops: those that Flink was seen to make, or those that are computed."""
    hops_s = dict(values(results, "hop_s"))
    for key, label in (("mean_error", "mean"), ("p99_error", "p99")):
        errors = {
            hops_s[part]: 100 * value
            for part, value in values(results, key)
            if part.startswith("flink_") == of_flink and value > 0
        }
        how = "Flink, 5 cards" if of_flink else "computed"
        yield Line(f"{label}, {how}", list(errors.items()), dashed=not of_flink)


def _topics(results: Results) -> list[Chart]:
    names = {1 / (1 - quantile): f"p{quantile * 100:g}" for quantile in QUANTILES.values()}
    flinks = [part for part, _ in values(results, "unanswered_share")]
    latencies = [
        _quantile_line(results, "engine", "this engine"),
        *(_quantile_line(results, part, _flink_label(results, part)) for part in flinks),
    ]
    errors = [*_error_lines(results, of_flink=False), *_error_lines(results, of_flink=True)]
    return [
        Chart("Latencies by topics at 500 events/s", "quantile", "ms", latencies, names),
        Chart("How much of the exact sum a hopping window lacks", "hop in seconds", "%", errors),
    ]


def _nodes(results: Results) -> list[Chart]:
    nodes = dict(values(results, "nodes"))
    rates = [(nodes[part], value) for part, value in values(results, "computed_events_per_s")]
    costs = [
        Line(
            f"{who}, {how}",
            [(results.figures[f"{part}.units"], value) for part, value in values(results, f"{how}_{who}_us")],
        )
        for who in ("frontend", "unit", "broker")
        for how in ("bulk", "steady")
    ]
    paper = Line("the paper's own", PAPER_RATES, dashed=True)
    return [
        Chart("Processor time of an event", "units", "µs", costs),
        Chart(
            "Computed, not measured", "nodes", "events/s", [Line("computed here", rates, dashed=True), paper]
        ),
    ]


def _rates(results: Results) -> list[Chart]:
    per_s = dict(values(results, "rate_per_s"))
    title = "Latencies by topics"
    for part in per_s.keys() & results.not_run.keys():
        title += f"; it falls behind at {per_s[part]:,.0f} events/s"
    lines = [
        Line(
            label,
            [(per_s[part], value) for part, value in values(results, figure) if part not in results.not_run],
        )
        for figure, label in (("p50_ms", "p50"), ("p99_ms", "p99"), ("p999_ms", "p99.9"))
    ]
    return [Chart(title, "events/s", "ms", lines)]


def _recovery(results: Results) -> list[Bars]:
    seconds = dict(values(results, "seconds"))
    events = max((value for _, value in values(results, "held_events")), default=0.0)
    title = f"Until a copy of a task with {events:,.0f} events can answer"
    return [Bars(title, "s", [(name, seconds[way]) for way, name in WAYS.items() if way in seconds])]


CHARTS: dict[str, Callable[[Results], Sequence[Chart | Bars]]] = {
    "fig9b": _edges,
    "fig9a": _lengths,
    "fig8": _topics,
    "fig10": _nodes,
    "rates": _rates,
    "recovery": _recovery,
}


def svg_of(results: Results) -> str:
    """Return the SVG of a figure's results."""
    figure = results.bench.removeprefix("paper-")
    return drawn(CHARTS[figure](results), circumstances(results))
