"""Writes what a run's file says into a page, between its marks: no figure is written by hand."""

from collections.abc import Iterable, Iterator, Sequence

from bench.kept_results import Results


def written(page: str, name: str, text: str) -> str:
    """Return a page with a text between the marks of this name. Raises ValueError if the page has no such marks."""
    opening, closing = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, begin, rest = page.partition(opening)
    _, end, after = rest.partition(closing)
    if not begin or not end:
        raise ValueError(f"no {opening} and {closing} in the page")
    return f"{before}{opening}\n{text}{closing}{after}"


def circumstances(results: Results) -> str:
    """Return the machine and the parameters as a line of text."""
    machine, parameters = results.machine, results.parameters
    parts = [
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB",
        f"{machine['system']}, Python {machine['python']}, Java {machine['java'] or 'none'}",
        f"scale {parameters['scale']:g}, {parameters['runs']} runs, {_when(results)}",
    ]
    return "; ".join(parts) + "."


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def not_run(results: Results) -> list[str]:
    """Return the lines that say what has no figures, and why."""
    missing = [f"- `{what}`: {why}" for what, why in results.not_run.items()]
    return ["", "Not run:", "", *missing] if missing else []


def _when(results: Results) -> str:
    at = [run["at"] for run in results.runs.values()]
    loads = [run["load_1min"] for run in results.runs.values()]
    return f"{min(at)[:10]}, load {min(loads):g} to {max(loads):g}" if at else "nothing measured"
