"""`railgun explain` from a definitions file."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from railgun.cli.main import main
from tests.explain.explained import DEFINITIONS

SECOND = """
[streams.clicks.fields]
page = "string"

[[metrics]]
sql = "SELECT count(*) AS n FROM clicks OVER INFINITE"
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "definitions.toml"
    path.write_text(DEFINITIONS + SECOND)
    return str(path)


def test_all_streams_or_one(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", file]) == 0
    both = capsys.readouterr().out
    assert both.startswith("stream payments\n├─ by card (4 tasks): 9 metrics, 3 windows")
    assert "\nstream clicks\n└─ all events together (1 task): 1 metric" in both
    assert main(["explain", file, "--stream", "clicks"]) == 0
    assert both.endswith(capsys.readouterr().out)


def test_a_file_with_nothing_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.toml"
    path.write_text("")
    assert main(["explain", str(path)]) == 0
    assert capsys.readouterr().out == "nothing to explain: there are no streams\n"


def test_formats(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", file, "--format", "json"]) == 0
    assert [stream["name"] for stream in json.loads(capsys.readouterr().out)["streams"]] == [
        "payments",
        "clicks",
    ]
    assert main(["explain", file, "--format", "svg"]) == 0
    assert ET.fromstring(capsys.readouterr().out).tag.endswith("svg")
    assert main(["explain", file, "--format", "dot"]) == 0
    assert capsys.readouterr().out.startswith("digraph railgun {")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[streams.s]\nlatenes = '5s'\n", "streams.s.latenes: unknown key; did you mean lateness?"),
        ("nonsense", "no TOML:"),
        (
            SECOND.replace("count(*)", "sum(pge)"),
            "metrics.0.sql: line 1, column 12: ",
        ),
    ],
)
def test_wrong_definitions(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "d.toml"
    path.write_text(text)
    assert main(["explain", str(path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"railgun explain: {path}: {message}")
    assert shown.err.count("\n") == 1


def test_an_unknown_stream(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", file, "--stream", "paymets"]) == 2
    message = f"railgun explain: {file}: unknown stream 'paymets'; did you mean payments?\n"
    assert capsys.readouterr().err == message
