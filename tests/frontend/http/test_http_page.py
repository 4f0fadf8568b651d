"""The page about HTTP: its examples are run, one after another, and give what it says."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.frontend.serving import server

PAGE = Path(__file__).parents[3] / "docs" / "http.md"
EXAMPLE = re.compile(r"```sh\n((?:(?!```).)*)```\n\n```json\n(.*?)```", re.DOTALL)
URL = "http://127.0.0.1:8080"


def values(text: str) -> list[Any]:
    """The JSON values in a text, one after another."""
    found: list[Any] = []
    decoder, text = json.JSONDecoder(), text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].lstrip()
    return found


def test_examples(tmp_path: Path) -> None:
    examples = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
    assert len(examples) >= 8
    with server(tmp_path / "data") as running:
        for command, shown in examples:
            assert URL in command
            done = subprocess.run(
                ["bash", "-c", command.replace(URL, running.service.url)],
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert (done.returncode, done.stderr) == (0, "")
            assert values(done.stdout) == values(shown), command
