"""The arguments that a node gives to each of its child processes."""

import argparse
from pathlib import Path


def child_parser(program: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser of these arguments, to which a process adds its own."""
    parser = argparse.ArgumentParser(program, description=description)
    parser.add_argument("--node-folder", type=Path, required=True)
    parser.add_argument("--units", type=int, required=True)
    parser.add_argument("--config")
    parser.add_argument("--broker")
    return parser
