"""What a sub-command is: how it is called, and what it does."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """summary: one line for the list of commands.  description, example: for its own help.

    configure adds its arguments to a parser.  execute does it and returns the exit code: 0 done, 1 the answer
    is "no"; whatever is wrong with the use or the input it raises.  What execute needs is imported inside it,
    so that the help of one command does not load the libraries of another.
    """

    name: str
    summary: str
    description: str
    example: str
    configure: Callable[[argparse.ArgumentParser], None]
    execute: Callable[[argparse.Namespace], int]
