"""Writes what a run's file says into a page, between its marks: no figure is written by hand."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from bench.kept_results import Results

_DAY_CHARACTERS, COMMIT_CHARACTERS = len("2026-01-31"), 8
# So many commits are named.
_COMMITS = 3


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
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB",
        f"{machine['system']}{_kernels(results)}, Python {machine['python']}, Java {machine['java'] or 'none'}",
        f"scale {parameters['scale']:g}, {parameters['runs']} runs, {_when(results)}",
        *_measured(results),
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


def _kernels(results: Results) -> str:
    kernels = sorted({run["kernel"] for run in results.runs.values()})
    return f" {', '.join(kernels)}" if kernels else ""


def _when(results: Results) -> str:
    days = [at[:_DAY_CHARACTERS] for at in results.measured_at]
    return " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "nothing measured"


def _measured(results: Results) -> Iterator[str]:
    """Yield which engines were measured, and the load meanwhile."""
    parts = Counter(run["commit"][:COMMIT_CHARACTERS] for run in results.runs.values())
    commits = [commit for commit, _ in parts.most_common()]
    if not commits:
        return
    more = f" and {len(commits) - _COMMITS} more" if len(commits) > _COMMITS else ""
    yield f"this engine's commit {', '.join(commits[:_COMMITS])}{more}"
    loads = [run["load_1min"] for run in results.runs.values()]
    low, high = min(loads), max(loads)
    yield f"load of one minute at each part's end {low:g} to {high:g}, the bench's own threads included"
