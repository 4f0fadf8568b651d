"""Tokens and keys are in no log, no answer and no file, whatever goes wrong."""

import contextlib
import os
import signal
import ssl
from pathlib import Path

import httpx
import pytest

from railgun.access.tokens import hash_of
from railgun.cli.main import main
from tests.certificates import Authority, encrypted
from tests.frontend.access.callers import OWN, bearer, secret
from tests.frontend.access.test_reload import AS_A_SERVICE
from tests.frontend.access.test_reload_of_certificates import NOT_READ_AGAIN
from tests.frontend.serving_process import process

CONFIG = """
[logging]
level = "debug"
[http]
in_flight_limit_events = 1
[[http.tokens]]
name = "good"
sha256 = ["{good}"]
scopes = ["*"]
[[http.tokens]]
name = "ended"
sha256 = ["{ended}"]
scopes = ["*"]
expires = 2020-01-01T00:00:00Z
"""
SENT = ("good", "ended", "unknown", "twice")


def test_tokens_are_in_no_log_and_no_file(tmp_path: Path) -> None:
    config = tmp_path / "r.toml"
    hashes = {name: hash_of(secret(name).encode()).hex() for name in ("good", "ended")}
    config.write_text(CONFIG.format(**hashes))
    data = tmp_path / "data"
    events = f"/v1/streams/{OWN}/events"
    with process(data, "--config", str(config), "--debug") as (child, client):
        answers = []
        for name in SENT:
            headers = {"Authorization": bearer(name)}
            for body in (b'{"tx_id": "a", "ts": 1, "card": "c"}', b"{", b"[{}, {}]", b"\xff" * 100_000):
                answers.append(
                    client.post(events, content=body, headers={**headers, "Content-Type": "application/json"})
                )
            answers.append(
                client.post(
                    events, content=b"x\n" * 9, headers={**headers, "Content-Type": "application/x-ndjson"}
                )
            )
            answers.append(client.get(f"/v1/streams/none?token={secret(name)}", headers=headers))
            answers += [
                client.get(path, headers=headers)
                for path in ("/metrics", "/v1/status", "/docs", "/v1/whoami")
            ]
            answers.append(client.put("/v1/streams", headers=headers))
            answers.append(client.post("/v1/streams", json={"name": 7}, headers=headers))
        answers.append(client.get("/v1/status", headers=[("Authorization", bearer("twice"))] * 2))
        assert {each.status_code for each in answers} == {200, 400, 401, 405, 413, 422}
        left = b"".join(str(each.headers).encode() + each.content for each in answers)
        command_line = Path(f"/proc/{child.pid}/cmdline").read_bytes()
        os.kill(child.pid, signal.SIGTERM)
        assert child.stderr is not None
        said = child.stderr.read()
    for name in SENT:
        # What stood in a URL is its sender's own doing.
        assert secret(name).encode() not in left
        assert secret(name) not in said
        assert secret(name).encode() not in command_line
        for file in data.rglob("*"):
            assert not file.is_file() or secret(name).encode() not in file.read_bytes()


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
        left += client.get("/metrics").text + client.get("/v1/status").text
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
    for file in data.rglob("*"):
        left += file.read_bytes().decode("latin-1") if file.is_file() else ""
    secrets = ["a-secret-phrase"]
    for key in (shown.key, locked, good.key, wrong.key):
        secrets += [line for line in key.read_text().splitlines() if not line.startswith("-----")]
    assert not [each for each in secrets if each in left]
