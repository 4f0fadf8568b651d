"""The grammar of the command line: commands, their help with examples, and hints for misspelt words."""

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from railgun import __version__
from railgun.cli.failures import UsageError, unknown


@dataclass(frozen=True, slots=True)
class Command:
    """A sub-command.

    summary: one line for the list of commands.
    description, example: for the command's own help.
    configure: adds the command's arguments to a parser.
    execute: runs the command and returns the exit code: 0 if done, 1 if the answer is "no". Raises errors for wrong use
    or input. It imports what it needs, so that the help of one command does not load the libraries of another.
    """

    name: str
    summary: str
    description: str
    example: str
    configure: Callable[[argparse.ArgumentParser], None]
    execute: Callable[[argparse.Namespace], int]


_WIDTH = 100
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def parse(commands: Sequence[Command], words: Sequence[str]) -> tuple[Command | None, argparse.Namespace]:
    """Return the command and its arguments. The command is None if none is named.

    Raises UsageError for what cannot be understood, SystemExit(0) after --help and --version.
    """
    parser, parsers = _parsers(commands)
    named = next((word for word in words if not word.startswith("-")), None)
    if named is not None and named not in parsers:
        raise UsageError(unknown("command", named, list(parsers)))
    arguments, extra = parser.parse_known_args(words)
    if extra:
        if not extra[0].startswith("-"):
            raise UsageError(f"too many arguments: {' '.join(extra)[:80]}; see railgun {named} --help")
        options = _OPTION.findall((parsers[named] if named else parser).format_usage())
        raise UsageError(unknown("option", extra[0].partition("=")[0], sorted(set(options))))
    return next((command for command in commands if command.name == named), None), arguments


def help_text(commands: Sequence[Command]) -> str:
    """Return what `railgun --help` prints."""
    return _parsers(commands)[0].format_help()


def _parsers(commands: Sequence[Command]) -> tuple[_Parser, dict[str, _Parser]]:
    parser = _Parser(
        prog="railgun",
        description="Exact sliding-window metrics for every event.",
        epilog="example:\n  railgun run definitions.toml events.parquet --out scores.parquet",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"railgun {__version__}")
    _add_debug(parser, default=False)
    found = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)
    return parser, {command.name: _command_parser(found, command) for command in commands}


def _command_parser(found: "argparse._SubParsersAction[_Parser]", command: Command) -> _Parser:
    parser = found.add_parser(
        command.name,
        help=command.summary,
        description=command.description,
        epilog=f"example:\n  {command.example}",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    command.configure(parser)
    _add_debug(parser, default=argparse.SUPPRESS)
    return parser


def _add_debug(parser: argparse.ArgumentParser, default: object) -> None:
    parser.add_argument(
        "--debug", action="store_true", default=default, help="show where in the program an error arose"
    )


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=28, width=_WIDTH)
