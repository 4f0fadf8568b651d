"""SIGHUP to a server under load: tokens come and go, and no request fails that should not."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import httpx

from tests.config.test_reloading import lines
from tests.frontend.access.test_every_route import EVENT, EVENTS
from tests.frontend.serving import until
from tests.frontend.serving_process import process

SWAPS = 40
# However the tests were started: on a terminal, or with SIGHUP ignored, a server leaves SIGHUP its meaning.
AS_A_SERVICE = (
    sys.executable,
    "-c",
    """import os, signal, sys
os.setsid()
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])""",
)


def status(client: httpx.Client, name: str) -> int:
    headers = {"Authorization": f"Bearer {name}", "Content-Type": "application/json"}
    return client.post(EVENTS, content=EVENT, headers=headers).status_code


def test_tokens_are_swapped_under_load(tmp_path: Path) -> None:
    config = tmp_path / "r.toml"

    def configure(text: str) -> None:
        beside = tmp_path / "new.toml"
        beside.write_text(text)
        beside.replace(config)

    configure(lines("kept", "odd"))
    with process(tmp_path / "data", "--config", str(config), before=AS_A_SERVICE) as (child, client):
        found: list[int] = []
        is_over = threading.Event()

        def send() -> None:
            with httpx.Client(base_url=client.base_url, trust_env=False, timeout=60) as own:
                while not is_over.is_set():
                    found.append(status(own, "kept"))

        senders = [threading.Thread(target=send) for _ in range(2)]
        for sender in senders:
            sender.start()
        try:
            for swap in range(SWAPS):
                now, before = ("even", "odd") if swap % 2 == 0 else ("odd", "even")
                configure(lines("kept", now) if swap % 3 else lines(now, "kept", "more"))
                os.kill(child.pid, signal.SIGHUP)
                until(lambda now=now: status(client, now) == 200)
                assert status(client, before) == 401
                # A broken file changes nothing.
                configure(lines("kept")[:-5])
                os.kill(child.pid, signal.SIGHUP)
                assert status(client, now) == 200
            time.sleep(0.1)
        finally:
            is_over.set()
            for sender in senders:
                sender.join()
        assert set(found) == {200}
        assert len(found) > SWAPS
        configure(lines("even"))
        os.kill(child.pid, signal.SIGHUP)
        until(lambda: status(client, "kept") == 401)
        assert child.poll() is None
