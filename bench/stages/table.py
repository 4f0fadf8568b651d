"""Writes the table of stages from a run's file."""

from collections.abc import Iterator

from bench.found import Found, shown
from bench.kept_results import Results
from bench.pages import circumstances, not_run, table

_PARTS = {"batches": "2,048 at a time", "single": "one at a time"}
_COLUMNS = ("ns per event", "the least, ns", "times the least")
_ENDING = "_ns"


def text_of(results: Results) -> str:
    """Return the table as Markdown: what each stage takes of an event, and how many times the least that is."""
    parts = [Found(results, part) for part in _PARTS if part in results.runs]
    head = ["stage", *(f"{_PARTS[part.name]}: {column}" for part in parts for column in _COLUMNS)]
    stages = dict.fromkeys(stage for part in parts for stage in _stages(part))
    rows = [[f"`{stage}`", *(cell for part in parts for cell in _cells(part, stage))] for stage in stages]
    return "\n".join([*table(head, rows), "", circumstances(results), *not_run(results)]) + "\n"


def _stages(part: Found) -> Iterator[str]:
    """Yield the stages of a part: what has a spread."""
    for key in part.figures:
        if key.endswith(f"{_ENDING}_least"):
            yield key.removesuffix(f"{_ENDING}_least")


def _cells(part: Found, stage: str) -> Iterator[str]:
    if stage not in _stages(part):
        yield from ("", "", "")
        return
    yield part.with_spread(f"{stage}{_ENDING}")
    least_ns = part.get(f"{stage}_bound{_ENDING}")
    yield "" if least_ns is None else shown(least_ns)
    yield "" if least_ns is None else f"{shown(part[f'{stage}{_ENDING}'] / least_ns)} ×"
