"""The base distribution by itself: the client and its commands work, and all else names what to install."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from railgun.demo.processes import Server
from railgun.extras import ENGINE_MODULES, EngineMissingError, needing_engine
from tests.client.base_alone import asked_for, base_packages
from tests.forked import ROOT

REMEDY = "is not installed: pip install '.[engine]' in Railgun's folder"
DEFINITIONS = """
[streams.s]
time = "ts"
id = "tx"
partitioners = ["card"]
[streams.s.fields]
tx = "string"
ts = "timestamp"
card = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM s GROUP BY card OVER SLIDING 1 DAY"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server("serve", "--data", str(tmp_path_factory.mktemp("serve") / "data")) as started:
        yield started


def base(*words: str | Path, sent: str = "") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.client.base_alone", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, input=sent, capture_output=True, text=True, timeout=60)


def test_the_engine_is_named_whole() -> None:
    """Modules are named as their packages are, with underscores; but for one."""
    names = {each.name.replace("-", "_") for each in asked_for("engine")}
    asked = {"google" if name == "protobuf" else name for name in names}
    assert asked == ENGINE_MODULES
    assert not base_packages() & {each.name for each in asked_for("engine")}


def test_the_commands_that_talk_to_a_server_work(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "d.toml"
    file.write_text(DEFINITIONS)
    applied = base("apply", file, "--url", server.url)
    assert (applied.returncode, applied.stderr) == (0, "")
    assert applied.stdout == "created stream s\ncreated metric s.n\n"
    event = json.dumps({"tx": "t1", "ts": 1_700_000_000_000, "card": "c"})
    scored = base("score", "s", "--url", server.url, sent=event)
    assert (scored.returncode, scored.stderr) == (0, "")
    assert json.loads(scored.stdout)["metrics"] == {"n": 1}
    for words, said in (
        (("values", "s", "--key", "card=c"), "n       1"),
        (("status",), "s: 1 metric, 1 task"),
        (("log",), "s"),
    ):
        done = base(*words, "--url", server.url)
        assert (done.returncode, done.stderr) == (0, "")
        assert said in done.stdout
    assert base("token", "new", "a", "--scope", "*").returncode == 0
    assert base("--help").returncode == 0


def test_programs_have_both_clients(server: Server) -> None:
    program = f"""
import asyncio, sys
import railgun
with railgun.Client({server.url!r}) as client:
    assert client.is_ready()
async def main():
    async with railgun.AsyncClient({server.url!r}) as client:
        assert await client.is_ready()
asyncio.run(main())
engine = {sorted(ENGINE_MODULES)!r}
assert not [name for name in sys.modules if name.partition(".")[0] in engine]
try:
    railgun.Engine
except ImportError as error:
    print(error)
"""
    done = base("-c", program)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"railgun.Engine needs the engine, and pyarrow {REMEDY}\n"


@pytest.mark.parametrize(
    "words",
    [
        ["serve", "--data", "data"],
        ["serve", "--broker", "127.0.0.1:9092"],
        ["frontend"],
        ["node", "--data", "data"],
        ["run", "d.toml", "e.csv", "--stream", "s", "--out", "o.csv"],
        ["explain", "d.toml"],
        ["inspect", "data"],
        ["broker", "status"],
        ["backfill", "d.toml", "e.parquet", "--until", "2024-01-01T00:00:00Z"],
    ],
    ids=" ".join,
)
def test_what_needs_the_engine_names_the_remedy(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "d.toml").write_text(DEFINITIONS)
    (tmp_path / "e.csv").write_text("tx,ts,card\n")
    placed = [
        str(tmp_path / word) if word in ("d.toml", "e.csv", "o.csv", "data") else word for word in words
    ]
    done = base(*placed)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"railgun {words[0]}: this command needs the engine, and ")
    assert done.stderr.endswith(f"{REMEDY}\n")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_validate_names_the_extra_that_has_all_it_needs(tmp_path: Path) -> None:
    for name, text in (("d.toml", DEFINITIONS), ("e.csv", "tx,ts,card\n"), ("o.csv", "tx,n\n")):
        (tmp_path / name).write_text(text)
    done = base("validate", tmp_path / "d.toml", tmp_path / "e.csv", "--out", tmp_path / "o.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not installed: pip install '.[spark]' in Railgun's folder" in done.stderr


def test_another_module_that_is_missing_is_a_defect() -> None:
    with pytest.raises(ModuleNotFoundError, match="nowhere"), needing_engine("this"):
        raise ModuleNotFoundError("No module named 'nowhere'", name="nowhere")
    with pytest.raises(EngineMissingError, match="numpy"), needing_engine("this"):
        raise ModuleNotFoundError("No module named 'numpy.core'", name="numpy.core")
