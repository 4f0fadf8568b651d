"""The flags of commands that start a Spark on this machine."""

import argparse

ALL_CORES = 0
_CORES_MAX = 1_024


def add_local_spark(parser: argparse.ArgumentParser, cores_left_out: str) -> None:
    """`--cores`, None where it is left out, and `--memory`. cores_left_out: what that means."""
    parser.add_argument(
        "--cores",
        metavar="N",
        type=_cores,
        help=f"cores of this machine for Spark, * for all (default: {cores_left_out})",
    )
    parser.add_argument("--memory", metavar="SIZE", default="1g", help="memory for Spark (default: 1g)")


def _cores(text: str) -> int:
    if text == "*":
        return ALL_CORES
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _CORES_MAX:
        raise argparse.ArgumentTypeError(f"{text[:40]} is neither * nor a number from 1 to {_CORES_MAX}")
    return int(text)
