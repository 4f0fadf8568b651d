"""Runs a bench from its command line: which cases, how often and at which scale. Prints one line of JSON at the end."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence

from bench.children import ChildFailedError
from bench.process import compile_all, end_in_order, load
from bench.report import Report

Case = Callable[[Report], None]


def again_option(parser: argparse.ArgumentParser) -> None:
    """Add the option of a bench that keeps its figures."""
    parser.add_argument("--again", action="store_true", help="measure what is known, too")


def measure(
    bench: str,
    about: str | None,
    cases: Mapping[str, Case],
    configure: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> int:
    """Run `python -m bench.<bench>`: measure the named cases, print the figures. Returns 1 if a case failed.

    about: for `--help`.  cases: by the name that `--only` takes; a bench of one case has no such option.
    configure: adds options of the bench's own, which are in `Report.options`.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m bench.{bench}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if len(cases) > 1:
        parser.add_argument(
            "--only", nargs="*", choices=list(cases), help="what to measure (default: everything)"
        )
    parser.add_argument("--runs", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="measured events, seconds and long windows, as a multiple"
    )
    configure(parser)
    arguments = parser.parse_args()
    end_in_order()
    compile_all()
    report = Report(arguments.runs, arguments.scale, options=arguments)
    chosen: Sequence[str] = getattr(arguments, "only", None) or list(cases)
    failed = False
    print(f"at the start: {load()}")
    for name in chosen:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            cases[name](report)
        except ChildFailedError as error:
            failed = True
            report.note_missing(name, str(error))
    print(f"at the end: {load()}")
    print(json.dumps({"bench": bench, "figures": report.figures, "not_run": report.not_run}))
    return int(failed)
