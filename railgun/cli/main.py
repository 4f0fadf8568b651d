"""The railgun command: finds the sub-command, runs it, and turns any error into one line."""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from railgun.cli.apply import APPLY
from railgun.cli.backfill import BACKFILL
from railgun.cli.bench import BENCH
from railgun.cli.broker import BROKER
from railgun.cli.cluster import CLUSTER
from railgun.cli.drain import DRAIN, UNDRAIN
from railgun.cli.explain import EXPLAIN
from railgun.cli.failures import EXIT_INTERRUPTED, EXIT_TERMINATED, EXIT_WRONG, one_line
from railgun.cli.frontend import FRONTEND
from railgun.cli.init import INIT
from railgun.cli.inspect import INSPECT
from railgun.cli.log import LOG
from railgun.cli.node import NODE
from railgun.cli.parser import Command, help_text, parse
from railgun.cli.run import RUN
from railgun.cli.score import SCORE
from railgun.cli.serve import SERVE
from railgun.cli.status import STATUS
from railgun.cli.token import TOKEN
from railgun.cli.validate import VALIDATE
from railgun.cli.values import VALUES
from railgun.extras import needing_engine

COMMANDS = (
    INIT,
    SERVE,
    FRONTEND,
    NODE,
    CLUSTER,
    DRAIN,
    UNDRAIN,
    APPLY,
    SCORE,
    VALUES,
    STATUS,
    LOG,
    TOKEN,
    RUN,
    BENCH,
    EXPLAIN,
    INSPECT,
    VALIDATE,
    BACKFILL,
    BROKER,
)


class _TerminatedError(KeyboardInterrupt):
    """SIGTERM came. It is an interrupt, because libraries clean up after one."""


def main(words: Sequence[str] | None = None, commands: Sequence[Command] = COMMANDS) -> int:
    """Run the command line, and return the exit code. words: the arguments, without the program's name."""
    words = sys.argv[1:] if words is None else words
    _write_anything()
    with _terminating():
        return _guarded(lambda: _run(commands, words), _caller(commands, words), "--debug" in words)


def _run(commands: Sequence[Command], words: Sequence[str]) -> int:
    with needing_engine("this command"):
        command, arguments = parse(commands, words)
        if command is None:
            print(help_text(commands), end="", file=sys.stderr)
            return EXIT_WRONG
        code = command.execute(arguments)
    sys.stdout.flush()
    return code


def _guarded(action: Callable[[], int], caller: str, debug: bool) -> int:
    """Run an action, and return its exit code. An error becomes a line on standard error that begins with `caller`."""
    try:
        return action()
    except KeyboardInterrupt as interrupt:
        return _asked_to_end(interrupt, caller)
    except BrokenPipeError:
        # The reader of our output has closed it. What is still buffered must not be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except SystemExit as exit_asked:
        return exit_asked.code if isinstance(exit_asked.code, int) else 0
    except Exception as error:  # noqa: BLE001 - the one place where every error becomes a line and an exit code
        if debug:
            traceback.print_exc()
        behind = _interrupt_behind(error)
        if behind is not None:
            return _asked_to_end(behind, caller)
        print(f"{caller}: {one_line(error)}", file=sys.stderr)
        return EXIT_WRONG


def _asked_to_end(interrupt: KeyboardInterrupt, caller: str) -> int:
    """Print that the command was interrupted or terminated, and return the exit code for that."""
    is_signal = isinstance(interrupt, _TerminatedError)
    print(f"{caller}: {'terminated' if is_signal else 'interrupted'}", file=sys.stderr)
    return EXIT_TERMINATED if is_signal else EXIT_INTERRUPTED


def _interrupt_behind(error: BaseException) -> KeyboardInterrupt | None:
    """Return the interrupt under which an error came up.

    A library that cleans up after one may fail and raise the error.
    """
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__context__
    return behind


def _caller(commands: Sequence[Command], words: Sequence[str]) -> str:
    """Return how errors name the command, such as `railgun serve`."""
    names = {command.name for command in commands}
    return " ".join(["railgun", *[word for word in words if word in names][:1]])


def _write_anything() -> None:
    """Let no character of a name or a drawing fail on a terminal that lacks it."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextmanager
def _terminating() -> Iterator[None]:
    """Let SIGTERM unwind the stack as an interrupt does, so that unfinished files are removed."""

    def stop(signal_number: int, frame: FrameType | None) -> None:
        raise _TerminatedError

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread: whoever called us there handles signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
