"""Tokens and keys are in no log, no answer and no file, whatever goes wrong."""

import contextlib
import io
import os
import signal
import ssl
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from railgun.access.tokens import hash_of
from railgun.cli.main import main
from tests.certificates import Authority, encrypted
from tests.frontend.access.callers import OWN, bearer, secret
from tests.frontend.access.test_reload import AS_A_SERVICE
from tests.frontend.access.test_reload_of_certificates import NOT_READ_AGAIN
from tests.frontend.raw_client import RawClient, Response
from tests.frontend.serving_process import ROOT, process
from tests.proc import command_lines

CONFIG = """
[logging]
level = "debug"
[http]
in_flight_limit_events = 1
batch_limit_events = 1
[[http.tokens]]
name = "good"
sha256 = ["{good}"]
scopes = ["*"]
[[http.tokens]]
name = "few"
sha256 = ["{few}"]
scopes = ["read:others"]
[[http.tokens]]
name = "slow"
sha256 = ["{slow}"]
scopes = ["score:*"]
limit_per_s = 1
[[http.tokens]]
name = "ended"
sha256 = ["{ended}"]
scopes = ["*"]
expires = 2020-01-01T00:00:00Z
"""
KNOWN = ("good", "few", "slow", "ended")
SENT = (*KNOWN, "unknown", "twice", "in-a-file", "in-the-environment")
STATUSES = {200, 400, 401, 403, 404, 405, 408, 413, 422, 429, 431, 500, 503, 504}
FAULTY = (
    sys.executable,
    "-c",
    """import sys, time
from frontend.http import connection
from railgun.cli.main import main
from railgun.engine.engine import Engine
from railgun.engine.errors import FolderError

def defect(*_, **more):
    raise RuntimeError("nobody expected this")

def damaged(*_, **more):
    raise FolderError("data: damaged")

Engine.change_log, Engine.explain = defect, damaged
Engine.key_values = lambda *_, **more: time.sleep(0.5)
connection.HEAD_S = 2.0
sys.exit(main(sys.argv[4:]))""",
)
"""Runs the command of a server that is given to it, with faults."""


def answers_to(client: httpx.Client, name: str) -> Iterator[httpx.Response]:
    """What a token gets for requests of every kind."""
    events, auth = f"/v1/streams/{OWN}/events", {"Authorization": bearer(name)}
    for body in (b'{"tx_id": "a", "ts": 1, "card": "c"}', b"{", b"[{}, {}]", b"\xff" * 100_000):
        yield client.post(events, content=body, headers={**auth, "Content-Type": "application/json"})
    yield client.post(events, content=b"x\n" * 9, headers={**auth, "Content-Type": "application/x-ndjson"})
    for path in (
        f"/v1/streams/none?token={secret(name)}",
        f"/v1/streams/{OWN}/values?card=c&timeout_ms=1",
        f"/v1/streams/{OWN}/samples",
        *("/metrics", "/v1/status", "/v1/live", "/docs", "/v1/whoami", "/v1/log", "/none"),
    ):
        yield client.get(path, headers=auth)
    yield client.put("/v1/streams", headers=auth)
    yield client.post("/v1/streams", json={"name": 7}, headers=auth)
    yield client.post(f"/v1/streams/{OWN}/explain", json={"sql": "SELECT 1"}, headers=auth)
    with contextlib.suppress(httpx.TransportError):
        # The connection ends with it, which a client may see before the answer.
        yield client.get("/metrics", headers={**auth, "X-Long": "x" * 70_000})


def answer_to_half_a_head(address: tuple[str, int], name: str) -> Response:
    """What a token gets whose head does not end, on a connection that is kept."""
    with RawClient(address) as client:
        client.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.response().status == 200
        client.send(f"GET /metrics HTTP/1.1\r\nAuthorization: {bearer(name)}\r\n".encode())
        return client.response()


def of_commands(url: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What commands say that a server refuses, that reach none, and that are given no token at all."""
    file = folder / "token"
    for text in (secret("in-a-file"), f"{secret('in-a-file')} and more"):
        file.write_text(text)
        file.chmod(0o604)
        for words in (
            ["status"],
            ["log"],
            ["values", OWN, "--key", "card=c"],
            ["status", "--ca", str(folder)],
        ):
            assert main([*words, "--url", url, "--token-file", str(file), "--debug"]) == 2
    for token in (secret("in-the-environment"), f"{secret('in-the-environment')} and more"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAILGUN_TOKEN", token)
            for address in (url, url.replace("://", f"://{token}@"), "http://127.0.0.1:1"):
                assert main(["status", "--url", address, "--debug"]) == 2
    return "".join(capsys.readouterr())


def of_a_waiting_command(folder: Path) -> str:
    """What is seen of a command, while it waits, by everybody on the machine; and what it says."""
    file = folder / "token"
    file.write_text(secret("in-a-file"))
    file.chmod(0o600)
    words = ["score", OWN, "--url", "http://127.0.0.1:1", "--token-file", str(file), "--debug"]
    with subprocess.Popen(
        [sys.executable, "-m", "railgun", *words],
        cwd=ROOT,
        env={**os.environ, "RAILGUN_TOKEN": secret("in-the-environment")},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdin is not None
        assert command.stderr is not None
        command.stdin.write("{}\n")
        command.stdin.flush()
        said = command.stderr.readline()
        assert "waiting" in said
        seen = command_lines(command.pid)
        assert "--token-file" in seen
        command.terminate()
        return said + seen + command.stderr.read()


def of_bundle(client: httpx.Client, **headers: str) -> str:
    """All that is in a support bundle. Nobody else asks for one, so it is not refused."""
    answer = client.get("/v1/support", headers=headers)
    with zipfile.ZipFile(io.BytesIO(answer.content)) as bundle:
        return "".join(bundle.read(name).decode() for name in bundle.namelist())


def contents(folder: Path) -> str:
    """All files in a folder."""
    return "".join(file.read_bytes().decode("latin-1") for file in folder.rglob("*") if file.is_file())


def test_tokens_are_in_no_log_and_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, data = tmp_path / "r.toml", tmp_path / "data"
    hashes = {name: hash_of(secret(name).encode()).hex() for name in KNOWN}
    config.write_text(CONFIG.format(**hashes))
    with process(data, "--config", str(config), "--debug", before=FAULTY) as (child, client):
        answers = [each for name in SENT for each in answers_to(client, name)]
        answers.append(client.get("/v1/status", headers=[("Authorization", bearer("twice"))] * 2))
        left = "".join(f"{each.headers}{each.text}" for each in answers)
        left += of_bundle(client, Authorization=bearer("good"))
        url = client.base_url
        late = answer_to_half_a_head((url.host, url.port or 0), "good")
        left += f"{late}"
        statuses = {each.status_code for each in answers} | {late.status}
        left += of_commands(str(client.base_url), tmp_path, capsys) + of_a_waiting_command(tmp_path)
        left += command_lines(child.pid)
        os.kill(child.pid, signal.SIGTERM)
        assert child.stderr is not None
        left += child.stderr.read()
    assert statuses == STATUSES
    assert not [name for name in KNOWN if hashes[name] in left]
    for said in ('"scopes"', "nobody expected this", "data: damaged", "Traceback", "refused: ", "--config"):
        assert said in left
    left += contents(data)
    # What stood in a URL is its sender's own doing, and is not kept either.
    assert not [name for name in SENT if secret(name) in left]


@pytest.mark.parametrize(
    "url",
    [
        "htps://somebody:secret@127.0.0.1:1",
        "https://somebody:secr/et@127.0.0.1:1",
        "https://somebody:secret@127.0.0.1:port",
    ],
)
def test_the_password_of_a_schema_registry_is_not_told(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "r.toml"
    config.write_text(f'[logging]\nlevel = "debug"\n[input]\nschema_registry_url = "{url}"\n')
    words = [
        "frontend",
        "--broker",
        "127.0.0.1:1",
        "--http",
        "127.0.0.1:0",
        "--config",
        str(config),
        "--debug",
    ]
    assert main(words) == 2
    said = "".join(capsys.readouterr())
    assert "input.schema_registry_url: '" in said
    assert "secr" not in said


def test_keys_are_in_no_log_and_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a server and of a client; nor is the phrase that one is encrypted with asked for."""
    servers, clients = Authority(tmp_path, "servers"), Authority(tmp_path, "clients")
    shown, good, wrong = servers.pair(), clients.pair(), servers.pair()
    locked = tmp_path / "locked.key"
    locked.write_bytes(encrypted(shown.key, "a-secret-phrase"))
    config, data = tmp_path / "r.toml", tmp_path / "data"

    def configure(key: Path) -> None:
        config.write_text(
            f'[logging]\nlevel = "debug"\n[http]\nanonymous = true\n[http.tls]\ncertificate = "{shown.certificate}"\n'
            f'key = "{key}"\nclient_ca = "{clients.file}"\n'
        )

    configure(shown.key)
    left = ""
    with process(
        data, "--config", str(config), "--debug", before=AS_A_SERVICE, context=servers.client_context(good)
    ) as (child, client):
        left += client.get("/metrics").text + client.get("/v1/status").text + of_bundle(client)
        for context in (servers.client_context(wrong), ssl.create_default_context()):
            with pytest.raises(httpx.TransportError):
                httpx.get(str(client.base_url), verify=context, trust_env=False)
        with contextlib.suppress(httpx.TransportError):
            httpx.get(str(client.base_url).replace("https", "http"), trust_env=False)
        url = ["--url", str(client.base_url), "--ca", str(servers.file), "--cert", str(shown.certificate)]
        for key in (locked, good.key, tmp_path / "none"):
            assert main(["status", *url, "--key", str(key), "--debug"]) == 2
        assert child.stderr is not None
        for key in (locked, good.key, config, tmp_path / "none"):
            configure(key)
            os.kill(child.pid, signal.SIGHUP)
            while NOT_READ_AGAIN not in (line := child.stderr.readline()):
                left += line
            left += line
        left += Path(f"/proc/{child.pid}/cmdline").read_text()
        os.kill(child.pid, signal.SIGTERM)
        left += child.stderr.read()
    for key in (locked, good.key):
        configure(key)
        assert main(["serve", "--data", str(data), "--config", str(config), "--debug"]) == 2
    left += "".join(capsys.readouterr())
    assert "the key is encrypted" in left
    assert str(shown.key) in left
    for file in data.rglob("*"):
        left += file.read_bytes().decode("latin-1") if file.is_file() else ""
    secrets = ["a-secret-phrase"]
    for key in (shown.key, locked, good.key, wrong.key):
        secrets += [line for line in key.read_text().splitlines() if not line.startswith("-----")]
    assert not [each for each in secrets if each in left]
