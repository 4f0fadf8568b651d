"""The flags of commands that start a Spark on this machine."""

import argparse
import re

ALL_CORES = 0
_CORES_MAX = 1_024
_SIZE = re.compile(r"(\d{1,9})([mgt])", re.ASCII | re.IGNORECASE)
_MEBIBYTES = {"m": 1, "g": 1 << 10, "t": 1 << 20}
# Spark does not start with less than 450.
_MEMORY_LEAST_MIB = 512


def add_local_spark(parser: argparse.ArgumentParser) -> None:
    """`--cores` and `--memory`."""
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
    """As Java takes it."""
    found = _SIZE.fullmatch(text)
    if found is None or int(found[1]) * _MEBIBYTES[found[2].lower()] < _MEMORY_LEAST_MIB:
        raise argparse.ArgumentTypeError(
            f"{text[:40]} is no size of at least {_MEMORY_LEAST_MIB}m, as in 1500m or 2g"
        )
    return text
