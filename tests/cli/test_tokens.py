"""Tokens on the command line: `railgun token`, and the commands that send one to a server."""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from railgun.access.token_files import read_tokens_file
from railgun.cli.main import main
from tests.frontend.access.callers import OWN, guarded, secret, token
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line; gives its exit code, what it printed, and what it said."""
    for variable in ("RAILGUN_TOKEN", "RAILGUN_URL"):
        monkeypatch.delenv(variable, raising=False)

    def running(*words: str) -> tuple[int, str, str]:
        code = main(words)
        told = capsys.readouterr()
        return code, told.out, told.err

    return running


def test_a_new_token_and_the_lines_for_a_server(run: Run, tmp_path: Path) -> None:
    words = (
        "--scope",
        "score:payments",
        "read:payments",
        "--scope",
        "metrics",
        "score:payments",
        "--expires",
        "90d",
    )
    code, told, said = run("token", "new", "fraud-app", *words)
    made, _, lines = told.partition("\n\n")
    assert (code, bool(re.fullmatch(r"railgun_[\w-]{43}", made))) == (0, True)
    assert made not in said + lines
    (table,) = tomllib.loads(lines)["http"]["tokens"]
    left = table.pop("expires") - datetime.now(UTC)
    assert timedelta(days=89, hours=23) < left <= timedelta(days=90)
    assert table == {
        "name": "fraud-app",
        "sha256": [hashlib.sha256(made.encode()).hexdigest()],
        "scopes": ["score:payments", "read:payments", "metrics"],
    }
    file = tmp_path / "tokens.toml"
    file.write_text(lines)
    assert read_tokens_file(file)[0].name == "fraud-app"
    assert run("token", "new", "fraud-app", "--scope", "*")[1] != told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["new", "a b", "--scope", "*"], "NAME: a name of letters"),
        (["new", "a", "--scope", "scor:x"], "--scope: 'scor:x' is no scope; did you mean score:x?"),
        (["new", "a"], "--scope"),
        (["new", "a", "--scope", "*", "--expires", "soon"], "--expires: 'soon' is not how long it lasts"),
        (
            ["new", "a", "--scope", "*", "--expires", "2020-01-01"],
            "--expires: '2020-01-01' is not how long it lasts from now on; write days or hours, as in 90d or 12h",
        ),
        (
            ["new", "a", "--scope", "*", "--expires", "0d"],
            "--expires: '0d' is over at once; write how long it lasts",
        ),
        (["new", "a", "--scope", "*", "--expires", "9000000000d"], "--expires: "),
        (["old", "a", "--scope", "*"], "invalid choice: 'old'"),
    ],
)
def test_mistakes(run: Run, words: list[str], message: str) -> None:
    code, told, said = run("token", *words)
    assert (code, told) == (2, "")
    assert said.startswith("railgun token: ")
    assert message in said


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("guarded")
    own = (token("all", "*"), token("scores", f"score:{OWN}"))
    with pytest.MonkeyPatch.context() as patch, guarded(folder / "data", patch, tokens=own) as made:
        (folder / "payments.toml").write_text(PAYMENTS)
        (folder / "events.ndjson").write_text('{"tx_id": "a", "ts": 1700000000000, "card": "c"}\n')
        yield made


def test_every_command_that_talks_to_a_server_sends_the_token(
    run: Run, running: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = running.engine().folder.parent
    file = tmp_path / "token"
    file.write_text(secret("all") + "\n")
    file.chmod(0o600)
    commands = {
        ("apply", str(folder / "payments.toml")): 0,
        ("score", OWN, str(folder / "events.ndjson")): 0,
        ("status",): 0,
        # A server without a cluster refuses these, once it lets them in.
        ("cluster",): 2,
        ("drain", "node-1"): 1,
        ("undrain", "node-1"): 2,
    }
    for words, code in commands.items():
        url = ("--url", running.service.url)
        refused = run(*words, *url)
        assert refused[0] == 2
        assert "a token is needed" in refused[2]
        assert "commands take a token from --token-file, or RAILGUN_TOKEN" in refused[2]
        found = run(*words, *url, "--token-file", str(file))
        assert found[0] == code, (words, found)
        assert "a token is needed" not in found[2]
        with monkeypatch.context() as patch:
            patch.setenv("RAILGUN_TOKEN", secret("all"))
            assert run(*words, *url)[0] == code
            patch.setenv("RAILGUN_TOKEN", secret("unknown"))
            refused = run(*words, *url)
            assert refused[0] == 2
            assert secret("unknown") not in "".join(refused[1:])
            # The option wins.
            assert run(*words, *url, "--token-file", str(file))[0] == code


def test_the_scope_that_a_command_lacks_is_named(
    run: Run, running: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAILGUN_URL", running.service.url)
    monkeypatch.setenv("RAILGUN_TOKEN", secret("scores"))
    code, _, said = run("status")
    assert (code, "the token lacks the scope metrics" in said) == (2, True)


def test_files_that_hold_no_token_or_are_open_to_others(
    run: Run, running: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAILGUN_URL", running.service.url)
    file = tmp_path / "token"
    code, _, said = run("status", "--token-file", str(file))
    assert (code, f"{file}: No such file" in said) == (2, True)
    file.write_text(f"{secret('all')}\nmore\n")
    file.chmod(0o600)
    code, _, said = run("status", "--token-file", str(file))
    assert (code, "it holds no token" in said, secret("all") in said) == (2, True, False)
    file.write_text(secret("all"))
    file.chmod(0o644)
    code, told, said = run("status", "--json", "--token-file", str(file))
    assert (code, f"chmod 600 {file}" in said) == (0, True)
    assert json.loads(told)["streams"]
    monkeypatch.setenv("RAILGUN_TOKEN", f"{secret('all')} x")
    code, _, said = run("status")
    assert (code, "RAILGUN_TOKEN: it holds no token" in said, secret("all") in said) == (2, True, False)


def test_a_token_is_for_a_server_and_not_for_a_broker(run: Run) -> None:
    words = (
        "backfill",
        "d.toml",
        "h.parquet",
        "--data",
        "d",
        "--until",
        "2024-01-01T00:00:00Z",
        "--token-file",
        "t",
    )
    code, _, said = run(*words)
    assert (code, "Kafka's own security" in said) == (2, True)
