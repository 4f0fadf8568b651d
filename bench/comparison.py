"""Keeps what a comparison of revisions found, and writes its tables."""

from collections.abc import Iterator
from typing import Any

from bench.found import Found
from bench.keeping import Figures, spread
from bench.kept_results import FOLDER, Results, known
from bench.pages import COMMIT_CHARACTERS, circumstances, not_run, table
from bench.pairs import Pairs, lower_is_better, medians_of, ratios_of

_BASE, _NEW, _RATIO, _PAIRS = "_base", "_new", "_ratio", "_pairs"


def keep(parameters: dict[str, Any], what: str, pairs: Pairs) -> None:
    """Write the figures of a workload or case into the file of a comparison, in place of earlier ones of it.

    If there are none, earlier ones stay.
    parameters: with the `base`, the `scale` and the number of `runs`.
    """
    results = known("compare", parameters, FOLDER)
    if not pairs.values and results.has(what, ""):
        return
    for name in [name for name in results.not_run if name.startswith(f"{what}.")]:
        del results.not_run[name]
    # Why it ended early, if it did.
    missing = dict(pairs.missing)
    ended = missing.pop(what, None)
    if pairs.values:
        results.note(what, "", _figures(pairs), ended)
    elif ended is not None:
        results.note_missing(what, ended)
    for figure, why in missing.items():
        results.note_missing(f"{what}.{figure}", why)
    results.write(FOLDER)


def text_of(results: Results) -> str:
    """Return a table for each part as Markdown: a figure of the revision, of this tree, and their ratio in pairs."""
    commit = results.parameters["base"][:COMMIT_CHARACTERS]
    head = ["", f"`{commit}`", "this tree", "ratio in pairs", "pairs", ""]
    lines: list[str] = []
    for part in results.runs:
        lines += [f"`{part}`:", "", *table(head, _rows(Found(results, part))), ""]
    return "\n".join([*lines, circumstances(results), *not_run(results)]) + "\n"


def _figures(pairs: Pairs) -> Figures:
    """Return both medians of each figure, the median, the least and the greatest of its ratios, and how many."""
    found: Figures = {}
    for figure, values in pairs.values.items():
        base, new = medians_of(values)
        found |= {f"{figure}{_BASE}": base, f"{figure}{_NEW}": new}
        found |= spread(f"{figure}{_RATIO}", ratios_of(values))
        found[f"{figure}{_PAIRS}"] = float(len(values))
    return found


def _rows(part: Found) -> Iterator[list[str]]:
    for key in part.figures:
        figure = key.removesuffix(_BASE)
        if figure != key:
            both = (part.number(f"{figure}{end}") for end in (_BASE, _NEW))
            remark = "lower is better" if lower_is_better(figure) else ""
            pairs = part.number(f"{figure}{_PAIRS}")
            yield [f"`{figure}`", *both, part.with_spread(f"{figure}{_RATIO}"), pairs, remark]
