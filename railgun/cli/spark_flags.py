"""The flags of commands that run on Spark: for the Spark of this machine, and for the place of history."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from railgun.spark.backfill.source import HistorySource


def add_reading(parser: argparse.ArgumentParser, *, column: str, format_: str, option: str) -> None:
    """Add the flags that say how history is read. column, format_, option: their help texts."""
    parser.add_argument(
        "--column", metavar="FIELD=SQL", action="append", type=name_and_value, default=[], help=column
    )
    parser.add_argument("--format", metavar="F", help=format_)
    parser.add_argument(
        "--option", metavar="KEY=VALUE", action="append", type=name_and_value, default=[], help=option
    )


def source_of(arguments: argparse.Namespace) -> "HistorySource":
    """Return the history that the flags name. Raises as `HistorySource.of`."""
    from railgun.spark.backfill.source import HistorySource

    places = absolute_places(arguments.history, arguments.format)
    return HistorySource.of(places, arguments.format, dict(arguments.option))


def absolute_places(history: list[str], format_: str | None) -> list[str]:
    """Make local paths absolute, because the driver and executors may run in other folders."""
    if format_ == "table":
        return history
    return [place if "://" in place else str(Path(place).absolute()) for place in history]


def name_and_value(text: str) -> tuple[str, str]:
    """Return the two parts of NAME=VALUE. Raises ArgumentTypeError."""
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise argparse.ArgumentTypeError(f"{text} is not of the form name=value")
    return name.strip(), value.strip()


ALL_CORES = 0
_CORES_MAX = 1_024
_SIZE = re.compile(r"(\d{1,9})([mgt])", re.ASCII | re.IGNORECASE)
_MEBIBYTES = {"m": 1, "g": 1 << 10, "t": 1 << 20}
# Spark does not start with less than 450 MiB.
_MEMORY_LEAST_MIB = 512


def add_local_spark(parser: argparse.ArgumentParser) -> None:
    """Add `--cores` and `--memory`."""
    parser.add_argument(
        "--cores",
        metavar="N",
        type=_cores,
        default=ALL_CORES,
        help="cores of this machine for Spark, * for all (default: *)",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=_memory,
        default="1g",
        help="memory for Spark, as in 1500m or 2g (default: 1g)",
    )


def _cores(text: str) -> int:
    if text == "*":
        return ALL_CORES
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _CORES_MAX:
        raise argparse.ArgumentTypeError(f"{text[:40]} is neither * nor a number from 1 to {_CORES_MAX}")
    return int(text)


def _memory(text: str) -> str:
    """Return a size of memory in Java's form."""
    found = _SIZE.fullmatch(text)
    if found is None or int(found[1]) * _MEBIBYTES[found[2].lower()] < _MEMORY_LEAST_MIB:
        raise argparse.ArgumentTypeError(
            f"{text[:40]} is no size of at least {_MEMORY_LEAST_MIB}m, as in 1500m or 2g"
        )
    return text
