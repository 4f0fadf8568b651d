"""`python -m railgun.demo`: score a year of departures, then payments with planted fraud, and check by brute force."""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from railgun.client.client import Client
    from railgun.demo.flights import Flight
    from railgun.demo.nodes import Nodes
    from railgun.demo.payments import Payments
    from railgun.demo.processes import Server
    from railgun.demo.run import Verdict, Watch

# On a cluster a metric is added after this share of the departures. Half-way, a node is killed there.
_LATER_AT = 0.25
# Of a server that is shown: the last events with their replies are in its memory, for the console.
_KEEPS_EVENTS = {"RAILGUN_CONSOLE__SAMPLES": "1000"}
# How many payments that are fraud are named then.
_NAMED = 5
# How often a server that is kept is looked after.
_LOOK_S = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo. Returns 0 if all results were equal, 1 if not, 2 if it could not run, 130 if interrupted."""
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
        description="Score 336,776 real departures with exact sliding windows; check a random sample by brute force. "
        "By HTTP on one server, also score made-up payments and show which metrics tell fraud apart.",
        epilog="example: python -m railgun.demo --events 50000 --plain",
    )
    parser.add_argument("--events", type=int, metavar="N", help="only the first N departures")
    parser.add_argument(
        "--sample", type=int, default=2_000, metavar="N", help="how many departures to check (default: 2000)"
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="of the sample and the payments; by default another one every time",
    )
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--kafka", action="store_true", help="through topics of a Kafka broker of its own")
    way.add_argument(
        "--cluster",
        action="store_true",
        help="on three nodes, of which one is killed half-way and comes back",
    )
    way.add_argument(
        "--show",
        action="store_true",
        help="keep the server until Ctrl-C, with the payments, to look at them in its console",
    )
    parser.add_argument("--plain", action="store_true", help="lines instead of the board")
    return parser


def _run(console: Console, options: argparse.Namespace) -> int:
    from railgun.client.errors import ClientError
    from railgun.compiling import Compiling
    from railgun.demo.flights import DataMissingError, definitions, read_flights
    from railgun.demo.payments import payments
    from railgun.demo.processes import ServerError
    from railgun.demo.run import RefusedError, check, choose

    live = console.is_terminal and not options.plain
    seed = time.time_ns() % 1_000_000 if options.seed is None else options.seed
    with ExitStack() as stack:
        try:
            with _doing(console, live, "Reading a year of departures"):
                flights = read_flights()[: options.events]
            sample = choose(flights, options.sample, seed)
            # Otherwise the server would do it, and not be ready for minutes.
            with _doing(console, live, "Compiling kernels, unless that was done before"):
                Compiling().run()
            made = None if options.kafka or options.cluster else payments(seed)
            found, paid, watch, server = _score(console, live, stack, flights, sample, made, options)
        except (DataMissingError, ServerError, ClientError, RefusedError) as error:
            console.print(str(error), markup=False, soft_wrap=True)
            return 2
        if not options.show:
            stack.close()
        with _doing(console, live, f"Computing {len(sample):,} departures anew, by brute force"):
            verdict = check(flights, found, watch)
        checked = (
            f"sample of {len(sample):,} departures (seed {seed}), all {len(definitions().metrics)} metrics of each "
            "and the one added while it ran"
        )
        is_equal = _tell(console, verdict, checked)
        if made is not None:
            is_equal &= _show_payments(console, live, made, paid)
        if options.show:
            assert made is not None
            is_equal &= _keep(console, live, server, made, paid)
    return 0 if is_equal else 1


def _keep(
    console: Console, live: bool, server: "Server", made: "Payments", paid: "Sequence[dict[str, Any]]"
) -> bool:
    """Keep the server until Ctrl-C, and stop it. Returns False if it has ended by itself, or not well."""
    from railgun.demo.payments_run import SHOWN, STREAM, fraud_to_show
    from railgun.demo.processes import ServerError

    console.print()
    fraud = ", ".join(fraud_to_show(made, paid)[-_NAMED:])
    console.print(f"The last planted fraud, each with a metric that finds it: {fraud}", soft_wrap=True)
    starts = ", ".join(f"{each.metric} from {each.start} on (start_{each.metric})" for each in SHOWN)
    console.print(f"Open one of them, and look for {starts}", soft_wrap=True)
    console.print(
        "A derived metric start_NAME is true where NAME has reached the library's threshold", soft_wrap=True
    )
    try:
        with suppress(KeyboardInterrupt):
            console.print(f"The payments are at {server.url}/#/live/{STREAM} until Ctrl-C", soft_wrap=True)
            while True:
                server.check()
                time.sleep(_LOOK_S)
        with _doing(console, live, "Stopping the server"):
            server.stop()
    except ServerError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        return False
    return True


def _tell(console: Console, verdict: "Verdict", checked: str) -> bool:
    """Print how many results were equal. Returns whether all were."""
    for line in verdict.differences:
        console.print(line, style="red")
    equal = f"[bold]{verdict.equal:,} of {verdict.compared:,} equal[/bold]"
    console.print(f"{checked}: {equal}", soft_wrap=True)
    return verdict.equal == verdict.compared


def _show_payments(console: Console, live: bool, made: "Payments", paid: "Sequence[dict[str, Any]]") -> bool:
    """Print what metrics of the library tell apart. Returns whether brute force computed the same."""
    from railgun.demo.payments_run import SHOWN, check_payments, separations
    from railgun.demo.payments_table import LEGEND, payments_table

    with _doing(console, live, f"Computing {len(SHOWN)} metrics of each payment anew, by brute force"):
        verdict = check_payments(made, paid)
    console.print()
    console.print(payments_table(separations(made, paid)))
    console.print(LEGEND, style="dim", soft_wrap=True)
    console.print()
    return _tell(console, verdict, f"these {len(SHOWN)} metrics of all {len(paid):,} payments")


def _score(
    console: Console,
    live: bool,
    stack: ExitStack,
    flights: "Sequence[Flight]",
    sample: set[int],
    made: "Payments | None",
    options: argparse.Namespace,
) -> "tuple[dict[int, dict[str, Any]], list[dict[str, Any]], Watch, Server]":
    """Score all departures and payments on processes of the demo's own, which end with `stack`.

    Returns the metrics of the sampled departures, those of all payments, the watch that has shown the departures, and
    the server; it is stopped unless it is to be shown.
    Raises ServerError, ClientError, RefusedError, DataMissingError.
    """
    from railgun.demo.board import Board, PlainLines
    from railgun.demo.flights import definitions
    from railgun.demo.nodes import PARTITIONS, FailingNodes
    from railgun.demo.run import Scoring, register

    folder = Path(stack.enter_context(TemporaryDirectory(prefix="railgun-demo-")))
    broker = _broker(console, live, stack, folder) if options.kafka or options.cluster else None
    server = _server(console, live, stack, folder, broker, is_cluster=options.cluster, shows=options.show)
    client = stack.enter_context(_client(server.url, broker if options.kafka else None))
    nodes = None
    if options.cluster:
        nodes = _nodes(console, live, stack, folder, broker, server.url)
    register(client, definitions(1 if nodes is None else PARTITIONS))
    if nodes is not None:
        with _doing(console, live, "Making two copies of each task"):
            nodes.await_whole()
    console.print(f"Look while it runs: {server.url}/", soft_wrap=True)
    console.print(
        f"{len(flights):,} departures, {len(definitions().metrics)} exact metrics each, "
        f"{_way(options, server.url, broker)}, every event durable before it is answered",
        soft_wrap=True,
    )
    with Board(console, server.url, nodes) if live else PlainLines(console, nodes) as watch:
        if nodes is None:
            scoring = Scoring(client, flights, sample, watch)
        else:
            scoring = Scoring(client, flights, sample, FailingNodes(nodes, watch), _LATER_AT)
        scoring.run()
    paid = [] if made is None else _score_payments(console, live, client, made, shows=options.show)
    if nodes is not None:
        with _doing(console, live, "Making all copies again"):
            nodes.await_whole()
        console.print(nodes.as_shown(), markup=False, soft_wrap=True)
    if not options.show:
        with _doing(console, live, "Stopping the server" if nodes is None else "Stopping all of it"):
            server.stop()
            if nodes is not None:
                nodes.stop()
    return scoring.found, paid, watch, server


def _score_payments(
    console: Console, live: bool, client: "Client", made: "Payments", *, shows: bool
) -> list[dict[str, Any]]:
    """Return the metrics of every payment. Raises ClientError, RefusedError, DataMissingError."""
    from railgun.demo.payments_run import STARTS, register_library, score, score_to_show

    metrics = register_library(client)
    begin_s = time.perf_counter()
    with _doing(console, live, f"Scoring {len(made.events):,} made-up payments"):
        paid = score_to_show(client, made) if shows else score(client, made.events)
    console.print(
        f"{len(paid):,} made-up payments, {len(made.labels):,} of them planted fraud, all {metrics} metrics of "
        f"config/examples/payments.toml and its {len(STARTS)} thresholds each: "
        f"{len(paid) / (time.perf_counter() - begin_s):,.0f} events/s",
        soft_wrap=True,
    )
    return paid


def _broker(console: Console, live: bool, stack: ExitStack, folder: Path) -> str:
    from railgun.demo.by_topics import own_broker

    with _doing(console, live, "Starting a Kafka broker"):
        return stack.enter_context(
            own_broker(folder / "broker", lambda line: console.print(line, soft_wrap=True))
        )


def _server(
    console: Console,
    live: bool,
    stack: ExitStack,
    folder: Path,
    broker: str | None,
    *,
    is_cluster: bool,
    shows: bool,
) -> "Server":
    from railgun.demo.processes import Server

    words: tuple[str, ...] = ("frontend",) if is_cluster else ("serve", "--data", str(folder / "data"))
    if broker is not None:
        words += ("--broker", broker)
    with _doing(console, live, f"Starting `railgun {words[0]}`"):
        return stack.enter_context(Server(*words, settings=_KEEPS_EVENTS if shows else {}))


def _nodes(
    console: Console, live: bool, stack: ExitStack, folder: Path, broker: str | None, url: str
) -> "Nodes":
    from railgun.demo.nodes import Nodes

    assert broker is not None
    with _doing(console, live, "Starting three times `railgun node`"):
        return stack.enter_context(Nodes(folder, broker, url))


def _client(url: str, broker: str | None) -> "Client":
    """Return a client of the server. broker: that of the topics by which events are scored; None: they go by HTTP."""
    from railgun.client.client import Client
    from railgun.demo.by_topics import TopicClient, make_topics

    if broker is None:
        return Client(url)
    make_topics(broker)
    return TopicClient(url, broker)


def _way(options: argparse.Namespace, url: str, broker: str | None) -> str:
    if options.kafka:
        return f"through topics of the broker at {broker}"
    return f"over HTTP to {url}" + (
        ", on three nodes with two copies of each task" if options.cluster else ""
    )


def _doing(console: Console, live: bool, what: str) -> AbstractContextManager[object]:
    """Show that something takes a moment, with a spinner if on a terminal, until the block is left."""
    if live:
        return console.status(f"{what} …")
    console.print(f"{what} …", soft_wrap=True)
    return nullcontext()


if __name__ == "__main__":
    # These signals end the demo as Ctrl-C does, so that the server and the temporary folder go.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    sys.exit(main())
