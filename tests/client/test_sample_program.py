"""Programs with both clients: what a strict type checker says of them, and what they do."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import railgun
from railgun.client.async_client import AsyncClient
from railgun.client.client import Client
from railgun.demo.processes import Server
from tests.client.sample_program import awaited, blocking
from tests.forked import ROOT
from tests.readme import block

FOLDER = Path(__file__).parent


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "definitions.toml").write_text(block("[streams.payments]"))
    definitions = str(tmp_path / "definitions.toml")
    with Server("serve", "--data", str(tmp_path / "served"), "--definitions", definitions) as started:
        yield started


def test_a_strict_type_checker_passes_a_program_and_finds_each_mistake_of_another() -> None:
    programs = [FOLDER / "sample_program.py", FOLDER / "mistaken_program.py"]
    # Away from the project's own settings: as in a user's folder.
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--show-error-codes",
        "--no-error-summary",
    ]
    checked = subprocess.run(
        [*command, "--explicit-package-bases", "--follow-imports=silent", *programs],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    said = re.findall(r"^(\S+?):(\d+): error: .*\[([a-z-]+)\]$", checked.stdout, re.MULTILINE)
    lines = programs[1].read_text(encoding="utf-8").splitlines()
    wanted = {
        ("tests/client/mistaken_program.py", str(number), line.rpartition("# ")[2])
        for number, line in enumerate(lines, 1)
        if "  # " in line
    }
    assert set(said) == wanted, checked.stdout + checked.stderr


def test_the_program_runs(server: Server) -> None:
    assert blocking(server.url) == [1, 2, 3, 4, 5, 6, 6, 422]
    assert asyncio.run(awaited(server.url)) == [7, 8, 9, 10, 11, 12, 12, 2, 2]


def test_the_readme_has_the_client_beside_the_engine(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = block("import railgun")
    assert "http://127.0.0.1:8080" in program
    names: dict[str, object] = {}
    exec(compile(program.replace("http://127.0.0.1:8080", server.url), "README.md", "exec"), names)
    assert (
        names["reply"]
        == names["same"]
        == {
            "id": "t1",
            "time": 1700000000000,
            "metrics": {"card_count_7d": 1, "card_sum_7d": 12.5},
        }
    )
    assert names["values"] == names["same_values"]


def test_both_clients_have_the_same_calls() -> None:
    def calls(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert calls(Client) == calls(AsyncClient)
    for name in calls(Client):
        assert getattr(Client, name).__doc__, name


def test_the_public_names() -> None:
    for name in railgun.__all__:
        assert getattr(railgun, name) is not None
    # In a process that has asked for none of them yet.
    listed = subprocess.run(
        [sys.executable, "-c", "import railgun; print(*dir(railgun))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(listed.stdout.split()) >= {*railgun.__all__, "__doc__"}
    with pytest.raises(AttributeError, match="has no attribute 'client_'"):
        railgun.client_  # noqa: B018
