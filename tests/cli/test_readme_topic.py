"""README's example of a topic of one's own: its commands, typed as they stand there, give the reply that it shows."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from railgun.broker.local import LocalBroker
from tests.broker.quick_broker import running
from tests.forked import ROOT
from tests.readme import block

_ADDRESS, _START = "127.0.0.1:9092", "railgun broker start "
_PATIENCE_S, _LOOK_S = 120.0, 0.05


class Terminal:
    """Types commands of the README in a folder, with a broker in the place of the one that they would start."""

    def __init__(self, folder: Path, broker: LocalBroker) -> None:
        self._folder, self._address = folder, running(broker).address
        (folder / "railgun").mkdir()
        (folder / "railgun" / "broker").symlink_to(broker.folder)
        commands = folder / "bin"
        commands.mkdir()
        _script(commands / "railgun", "-m", "railgun")
        if shutil.which("kcat") is None:
            _script(commands / "kcat", "-m", "tests.cli.kcat")
        self._environment = {
            **os.environ,
            "PATH": f"{commands}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "XDG_STATE_HOME": str(folder),
            # The ones that the README has may be in use.
            "RAILGUN_CLUSTER__BROKER": self._address,
            "RAILGUN_HTTP__PORT": "0",
        }

    def run(self, text: str) -> None:
        """Type commands that end."""
        ended = subprocess.run(
            self._words(text), cwd=self._folder, env=self._environment, timeout=_PATIENCE_S
        )
        assert ended.returncode == 0

    @contextmanager
    def going_on(self, line: str) -> Iterator[Callable[[str], str]]:
        """Type a command that goes on; ended with the block. Gives what waits for a pattern in what it prints."""
        said = self._folder / f"{time.monotonic_ns()}.log"
        with said.open("wb") as out:
            process = subprocess.Popen(
                self._words(f"exec {line}"), cwd=self._folder, env=self._environment, stdout=out, stderr=out
            )

        def awaited(pattern: str) -> str:
            deadline_s = time.monotonic() + _PATIENCE_S
            while True:
                found = re.search(pattern, said.read_text(encoding="utf-8"), re.MULTILINE)
                if found is not None:
                    return found[0]
                assert process.poll() is None, said.read_text(encoding="utf-8")
                assert time.monotonic() < deadline_s, said.read_text(encoding="utf-8")
                time.sleep(_LOOK_S)

        try:
            yield awaited
        finally:
            process.terminate()
            process.wait(_PATIENCE_S)

    def _words(self, text: str) -> list[str]:
        return ["bash", "-e", "-c", text.replace(_ADDRESS, self._address)]


def _script(place: Path, *words: str) -> None:
    place.write_text(f'#!/bin/sh\nexec "{sys.executable}" {" ".join(words)} "$@"\n', encoding="utf-8")
    place.chmod(0o755)


@pytest.mark.timeout(400)
def test_the_commands_give_the_reply(broker: LocalBroker, tmp_path: Path) -> None:
    first, _, others = block(_START).partition("\n")
    assert first.startswith(_START)
    node, front_end, reader = block("railgun node").splitlines()
    shown = block("topic=shop.orders").rstrip("\n")
    place, _, wanted = shown.partition(" ")
    terminal = Terminal(tmp_path, broker)
    terminal.run(others)
    with terminal.going_on(node) as of_node, terminal.going_on(front_end) as of_front_end:
        of_node(r"^ready$")
        of_front_end("serving")
        of_front_end("events are read from shop.orders")
        with terminal.going_on(reader) as of_reader:
            headers, _, reply = of_reader(rf"^{re.escape(place)} .*$").partition(" ")
    assert headers == place
    assert {**json.loads(reply), "id": "…"} == json.loads(wanted)
    assert '"total": 4.5' in others.splitlines()[-3], "the reply is not that to the last event"
