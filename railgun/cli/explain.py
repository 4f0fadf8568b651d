"""`railgun explain`: what the metrics of a definitions file share."""

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from railgun.cli.parser import Command

if TYPE_CHECKING:
    from railgun.catalog.model import StreamDefinition

FORMATS = ("tree", "dot", "svg", "json")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun explain`."""
    parser.add_argument("definitions", metavar="DEFINITIONS", help="a definitions file (TOML)")
    parser.add_argument("--stream", metavar="S", help="this stream only")
    parser.add_argument("--format", choices=FORMATS, default="tree", help="how to show it (default: tree)")


def execute(arguments: argparse.Namespace) -> int:
    """Print the plan of every stream, or of one. Raises DefinitionError, UsageError, OSError."""
    from railgun.catalog.definitions import load_definitions
    from railgun.cli.streams import the_stream
    from railgun.explain.analysis import Home, explain_stream
    from railgun.explain.dot import render_dot
    from railgun.explain.explanation import Explanation, render_json
    from railgun.explain.svg import render_svg
    from railgun.explain.tree import render_tree

    definitions = load_definitions(arguments.definitions)
    streams: Iterable[StreamDefinition] = definitions.streams.values()
    if arguments.stream is not None:
        streams = [the_stream(definitions, arguments.stream, arguments.definitions)]
    explanation = Explanation(
        tuple(
            explain_stream(
                stream,
                [
                    Home(
                        partitioner,
                        stream.partitions_of(partitioner),
                        [m.resolved for m in definitions.metrics_of(stream.name) if m.home == partitioner],
                    )
                    for partitioner in stream.partitioners
                ],
                definitions.derived_of(stream.name),
            )
            for stream in streams
        )
    )
    render = {"tree": render_tree, "dot": render_dot, "svg": render_svg, "json": render_json}
    print(render[arguments.format](explanation), end="")
    return 0


EXPLAIN = Command(
    name="explain",
    summary="the plan of a definitions file: windows, filters, groups, metrics, and what they share",
    description=(
        "Show how the metrics of a definitions file are computed: which windows, filters, groups and pieces\n"
        "of state they share, which edges of windows need a cursor, which columns are kept with each event,\n"
        "and how large the state of an entity is."
    ),
    example="railgun explain definitions.toml --format svg > plan.svg",
    configure=configure,
    execute=execute,
)
