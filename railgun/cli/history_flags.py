"""How history is named on the command line: where it is, what its fields are made of."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from railgun.spark.backfill.source import HistorySource


def add_reading(parser: argparse.ArgumentParser, *, column: str, format_: str, option: str) -> None:
    """The flags that say how a history is read, each with what its help says."""
    parser.add_argument(
        "--column", metavar="FIELD=SQL", action="append", type=name_and_value, default=[], help=column
    )
    parser.add_argument("--format", metavar="F", help=format_)
    parser.add_argument(
        "--option", metavar="KEY=VALUE", action="append", type=name_and_value, default=[], help=option
    )


def source_of(arguments: argparse.Namespace) -> "HistorySource":
    """The history that is named, to be read as these flags say. Raises as `HistorySource.of`."""
    from railgun.spark.backfill.source import HistorySource

    places = absolute_places(arguments.history, arguments.format)
    return HistorySource.of(places, arguments.format, dict(arguments.option))


def absolute_places(history: list[str], format_: str | None) -> list[str]:
    """Local paths become absolute: the driver and executors may stand elsewhere."""
    if format_ == "table":
        return history
    return [place if "://" in place else str(Path(place).absolute()) for place in history]


def name_and_value(text: str) -> tuple[str, str]:
    """Of NAME=VALUE. Raises ArgumentTypeError."""
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise argparse.ArgumentTypeError(f"{text} is not of the form name=value")
    return name.strip(), value.strip()
