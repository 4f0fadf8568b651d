"""The scripts' format: a definitions file, a line of dashes, then steps and what they must give."""

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracle.steps import (
    AddField,
    AddMetrics,
    AskValues,
    DropField,
    DropMetric,
    PlaceField,
    Score,
    SetClock,
    SetLateness,
    SetRetention,
    Step,
    WarmMetric,
)
from tests.scripts.expectation import Expectation, ScriptError

ABILITIES = frozenset({"clock", "warm"})


@dataclass(frozen=True)
class Restart:
    """The process ends and starts again on the same data."""


@dataclass
class Action:
    """A step at its line of the script; `expectation` None asks only that it is not refused."""

    line: int
    step: Step | Restart
    expectation: Expectation | None = None


@dataclass(frozen=True)
class Script:
    """`needs`: what an executor must be able to do beyond the usual, of ABILITIES."""

    definitions: str
    stream: str
    needs: frozenset[str]
    actions: list[Action] = field(default_factory=list)


_COMMANDS: tuple[tuple[str, Callable[[str], Step | Restart]], ...] = (
    ("event ", lambda rest: Score(json.loads(rest))),
    ("values ", lambda rest: _ask(rest)),
    ("add metric warming ", lambda rest: AddMetrics(rest, warm=False)),
    ("add metric ", AddMetrics),
    ("warm ", WarmMetric),
    ("drop metric ", DropMetric),
    ("add field ", lambda rest: _add_field(*rest.split(maxsplit=1))),
    ("place field ", lambda rest: _place_field(*rest.split(maxsplit=1))),
    ("drop field ", DropField),
    ("set lateness ", SetLateness),
    ("set retention ", SetRetention),
    ("set clock ", lambda rest: SetClock(int(rest))),
)


def _ask(text: str) -> AskValues:
    """`{key}`, or `NAME, NAME of {key}`."""
    names, _, key = text.rpartition(" of {")
    if not names:
        return AskValues(json.loads(text))
    return AskValues(json.loads("{" + key), tuple(name.strip() for name in names.split(",")))


def _add_field(name: str, declared: str) -> AddField:
    """`NAME TYPE`, or `NAME {table}`."""
    return AddField(name, json.loads(declared) if declared.startswith("{") else declared)


def _place_field(name: str, declared: str) -> PlaceField:
    return PlaceField(name, json.loads(declared))


def read_script(path: Path) -> Script:
    """The script in a file; raises ScriptError with the file and line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if "---" not in lines:
        raise ScriptError(f"{path.name}: no line of three dashes")
    start = lines.index("---")
    definitions = "\n".join(lines[:start]) + "\n"
    (stream,) = tomllib.loads(definitions)["streams"]
    logical = _joined(lines, start + 1)
    needs: frozenset[str] = frozenset()
    if logical and logical[0][1].startswith("needs "):
        needs = frozenset(logical.pop(0)[1].split()[1:])
        if needs - ABILITIES:
            raise ScriptError(f"{path.name}: needs are of {', '.join(sorted(ABILITIES))}")
    script = Script(definitions, stream, needs)
    for number, text in logical:
        try:
            _take(script, number, text)
        except (ScriptError, ValueError, TypeError) as error:
            raise ScriptError(f"{path.name}:{number}: {error}") from error
    return script


def _joined(lines: list[str], start: int) -> list[tuple[int, str]]:
    """The lines after the dashes without comments; an indented line goes on with the one before it."""
    logical: list[tuple[int, str]] = []
    for number, line in enumerate(lines[start:], start + 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if line[0].isspace() and not text.startswith("expect ") and logical:
            logical[-1] = (logical[-1][0], f"{logical[-1][1]} {text}")
        else:
            logical.append((number, text))
    return logical


def _take(script: Script, number: int, text: str) -> None:
    if text.startswith("expect "):
        if not script.actions or isinstance(script.actions[-1].step, Restart):
            raise ScriptError("nothing was done that could be expected to give anything")
        action = script.actions[-1]
        action.expectation = action.expectation or Expectation()
        action.expectation.take(text.removeprefix("expect ").strip())
    elif text == "restart":
        script.actions.append(Action(number, Restart()))
    else:
        for command, make in _COMMANDS:
            if text.startswith(command):
                script.actions.append(Action(number, make(text.removeprefix(command).strip())))
                return
        raise ScriptError(f"no step {text!r}")
