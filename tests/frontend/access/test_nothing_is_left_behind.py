"""Tokens are in no log, no answer and no file, whatever goes wrong."""

import os
import signal
from pathlib import Path

from railgun.access.tokens import hash_of
from tests.frontend.access.callers import OWN, bearer, secret
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
