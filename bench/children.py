"""Child processes that measure, one for each workload, so that each has memory of its own. Pipes connect them."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

# Importing kernels sets it. A child with other kernels must not inherit it.
_OWN_VARIABLES = ("NUMBA_CACHE_DIR",)
_ANSWER_SECONDS = 1_200.0
# Longer than a service that a child runs takes to stop (`bench.service`).
_END_SECONDS = 180.0
_SHOWN_CHARACTERS = 200

TREE = Path(__file__).resolve().parent.parent


class ChildFailedError(Exception):
    """A measuring process ended before it answered. Its errors are on stderr."""


class Child:
    """`python -m module arguments` on the modules in `folder` (by default this tree).

    It writes a line of JSON for each line that it reads, or one before it ends.  side: the name in errors of what it
    measures.  environment: more variables.
    """

    def __init__(
        self,
        module: str,
        arguments: list[str],
        folder: Path = TREE,
        side: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = " ".join([*([] if side is None else [f"{side}:"]), "python -m", module, *arguments])
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=folder,
            env={**environment_of(folder), **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.process.terminate()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def answer(self) -> dict[str, Any]:
        """Wait for the next line of the child, and decode it. Raises ChildFailedError."""
        assert self.process.stdout is not None
        watchdog = threading.Timer(_ANSWER_SECONDS, self.process.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            line = self.process.stdout.readline()
        finally:
            watchdog.cancel()
        if not line:
            raise ChildFailedError(f"{self.name}: ended with code {self.process.wait()}")
        return self._parsed(line)

    def lines(self) -> list[str]:
        """Wait for the child's end, and return its lines. Raises ChildFailedError."""
        assert self.process.stdout is not None
        lines = self.process.stdout.read().splitlines()
        if code := self.process.wait():
            raise ChildFailedError(f"{self.name}: ended with code {code}")
        return lines

    def last_answer(self) -> dict[str, Any]:
        """Wait for the child's end, and decode its last line. Raises ChildFailedError."""
        return self._parsed((self.lines() or [""])[-1])

    def tell(self, line: str) -> None:
        """Write a line to the child. Raises ChildFailedError."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise ChildFailedError(f"{self.name}: ended with code {self.process.wait()}") from None

    def ask(self) -> dict[str, Any]:
        """Have the child measure once more, and return its answer. Raises ChildFailedError."""
        self.tell("go")
        return self.answer()

    def _parsed(self, line: str) -> dict[str, Any]:
        try:
            answer = json.loads(line)
        except json.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            raise ChildFailedError(f"{self.name}: no line of JSON: {line[:_SHOWN_CHARACTERS]!r}")
        return answer


def environment_of(folder: Path) -> dict[str, str]:
    """Return this process's environment, changed so that modules of a folder come before those of an installed tree.

    That holds for the processes that the child starts, too.
    """
    environment = {key: value for key, value in os.environ.items() if key not in _OWN_VARIABLES}
    path = [str(folder), *filter(None, [environment.get("PYTHONPATH")])]
    return environment | {"PYTHONPATH": os.pathsep.join(path)}


def say(answer: dict[str, Any]) -> None:
    """Write a child's answer as a line of JSON."""
    print(json.dumps(answer), flush=True)
