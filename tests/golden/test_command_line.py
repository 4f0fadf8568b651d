"""The command line as scripts use it: commands, their options and arguments, exit codes. Not what help says of them."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from railgun.broker.local import Status
from railgun.cli import failures
from railgun.cli.broker import _show
from railgun.cli.main import COMMANDS, main
from tests.golden.promises import held, rooted


def option(action: argparse.Action) -> dict[str, Any]:
    """What a script can see of an option or argument."""
    found: dict[str, Any] = {}
    if not action.option_strings and action.metavar is None:
        found["name"] = action.dest
    for name in ("metavar", "nargs", "choices", "const", "default"):
        value = getattr(action, name)
        if value not in (None, False, [], argparse.SUPPRESS):
            found[name] = list(value) if name == "choices" else value
    if action.option_strings and action.required:
        found["required"] = True
    if isinstance(action, argparse._AppendAction):
        found["repeats"] = True
    return found


def test_commands_and_their_options() -> None:
    found = {}
    for command in COMMANDS:
        parser = argparse.ArgumentParser(add_help=False)
        command.configure(parser)
        found[command.name] = {
            " ".join(action.option_strings) or str(action.metavar or action.dest): option(action)
            for action in parser._actions
        }
    held("commands.json", found)


def test_a_local_broker_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _show(Status("127.0.0.1:9092", 7, Path("data"), 1.5, {"a topic": 3}), True)
    for action in ("status", "stop"):
        main(["broker", action, "--json", "--data", str(tmp_path / "none")])
    running, absent, stopped = map(json.loads, capsys.readouterr().out.splitlines())
    found = {"running": running, "none is running": absent, "stopped": stopped}
    held("broker_status.json", rooted(found, tmp_path))


def test_exit_codes() -> None:
    found = {
        "no": failures.EXIT_NO,
        "wrong use": failures.EXIT_WRONG,
        "interrupted": failures.EXIT_INTERRUPTED,
        "terminated": failures.EXIT_TERMINATED,
    }
    held("exit_codes.json", found)
