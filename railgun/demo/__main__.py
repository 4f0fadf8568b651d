"""`python -m railgun.demo`: score a year of departures on the durable engine and check a sample by brute force."""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from rich.console import Console


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every result compared was equal; 1: not; 2: the data set is missing; 130: interrupted."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    try:
        return _run(console, options)
    except KeyboardInterrupt:
        console.print("interrupted; nothing is left behind")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m railgun.demo",
        description="Score 336,776 real departures with exact sliding windows; check a random sample by brute force.",
        epilog="example: python -m railgun.demo --events 50000 --plain",
    )
    parser.add_argument("--events", type=int, metavar="N", help="only the first N departures")
    parser.add_argument(
        "--sample", type=int, default=2_000, metavar="N", help="how many to check (default: 2000)"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="of the sample; by default another one every time"
    )
    parser.add_argument("--plain", action="store_true", help="lines instead of the board")
    return parser


def _run(console: Console, options: argparse.Namespace) -> int:
    from railgun.demo.board import Board
    from railgun.demo.flights import DataMissingError, definitions, read_flights
    from railgun.demo.plain import PlainLines
    from railgun.demo.run import check, choose, score, warm_up
    from railgun.engine.engine import Engine

    live = console.is_terminal and not options.plain
    try:
        with _doing(console, live, "Reading a year of departures"):
            flights = read_flights()[: options.events]
    except DataMissingError as error:
        console.print(str(error))
        return 2
    with _doing(
        console, live, "Loading compiled kernels (compiled once per machine: then it takes a minute or two)"
    ):
        warm_up(flights)
    metrics = len(definitions().metrics)
    console.print(
        f"{len(flights):,} departures, {metrics} exact metrics each, every event durable before it is answered",
        soft_wrap=True,
    )
    seed = time.time_ns() % 1_000_000 if options.seed is None else options.seed
    sample = choose(flights, options.sample, seed)
    with Engine() as engine, Board(console) if live else PlainLines(console) as watch:
        found = score(engine, flights, sample, watch)
    with _doing(console, live, f"Computing {len(sample):,} of them anew, by brute force"):
        verdict = check(flights, found, watch)
    for line in verdict.differences:
        console.print(line, style="red")
    console.print(
        f"sample of {len(sample):,} events (seed {seed}), all {metrics} metrics of each: "
        f"[bold]{verdict.equal} of {verdict.compared} equal[/bold]",
        soft_wrap=True,
    )
    return 0 if verdict.equal == verdict.compared else 1


def _doing(console: Console, live: bool, what: str) -> AbstractContextManager[object]:
    """Says what takes a moment, on a terminal with a spinner."""
    if live:
        return console.status(f"{what} …")
    console.print(f"{what} …", soft_wrap=True)
    return nullcontext()


if __name__ == "__main__":
    # Asked to end, it ends as after Ctrl-C: the temporary folder goes.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
