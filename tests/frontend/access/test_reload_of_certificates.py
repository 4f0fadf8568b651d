"""SIGHUP to a server with TLS under load: certificates, CAs, revocations and tokens come and go together."""

import asyncio
import contextlib
import json
import os
import signal
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontend.http import service
from tests.certificates import Authority, Pair
from tests.config.test_reloading import lines
from tests.counts import seeds
from tests.frontend.access.test_every_route import EVENT, EVENTS, JSON, head_of, length
from tests.frontend.access.test_reload import AS_A_SERVICE
from tests.frontend.raw_client import PATIENCE_S, RawClient
from tests.frontend.serving_process import process

ATTEMPTS = 5
READ_AGAIN, NOT_READ_AGAIN = "the configuration was read again", "the configuration was not read again"


def request(token: str) -> bytes:
    return head_of("POST", EVENTS, [f"Bearer {token}"], *length(EVENT, JSON)) + EVENT


def status(client: RawClient, token: str) -> int:
    """Of an event with a token; 0 where the connection ends and nothing of an answer has come."""
    with contextlib.suppress(OSError):
        client.send(request(token))
    try:
        first = client.socket.recv(1)
    except OSError:
        return 0
    if not first:
        return 0
    client._rest = first
    return client.response().status


class World:
    """Files of a configuration that are written anew for each swap.

    `kept` is of a CA that is always good; `even` and `odd` are of CAs that are good in turn, as their tokens are;
    `taken back` is of the first CA, and revoked in each odd swap.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self.servers = folder, Authority(folder, "servers")
        self._cas = {name: Authority(folder, name) for name in ("kept", "even", "odd")}
        self._shown = [self.servers.pair() for _ in range(2)]
        self._taken_back = self._cas["kept"].pair()
        pairs = {name: ca.pair() for name, ca in self._cas.items()}
        self.contexts = {name: self.context(pair) for name, pair in pairs.items()}
        self.contexts["taken back"] = self.context(self._taken_back)
        self.config = folder / "r.toml"
        self.write(0)

    def context(self, pair: Pair) -> ssl.SSLContext:
        return self.servers.client_context(pair)

    def write(self, swap: int, *, broken: bool = False) -> None:
        """The configuration of a swap. broken: with the key of another certificate."""
        name = self.now(swap)
        revoked = [self._taken_back] if swap % 2 else []
        cas = [self._cas["kept"], self._cas[name]]
        self._put("ca.pem", b"".join(each.pem for each in cas))
        self._put("crl.pem", cas[0].revoking(*revoked) + cas[1].revoking())
        shown = self._shown[swap % 2]
        key = self._shown[(swap + broken) % 2].key
        self._put(
            "r.toml",
            f'[http.tls]\ncertificate = "{shown.certificate}"\nkey = "{key}"\n'
            f'client_ca = "{self._folder}/ca.pem"\nclient_crl = "{self._folder}/crl.pem"\n'
            f"{lines('kept', name)}".encode(),
        )

    def _put(self, name: str, content: bytes) -> None:
        beside = self._folder / "new"
        beside.write_bytes(content)
        beside.replace(self._folder / name)

    @staticmethod
    def now(swap: int) -> str:
        return "odd" if swap % 2 else "even"


class Process:
    """A server that reads its configuration again."""

    def __init__(self, child: Any, client: httpx.Client) -> None:
        self._child = child
        url = httpx.URL(str(client.base_url))
        assert url.port is not None
        self.address = url.host, url.port

    def hang_up(self, words: str) -> None:
        """Have it read its configuration again, and wait until its log says so."""
        os.kill(self._child.pid, signal.SIGHUP)
        said = ""
        while words not in said:
            said = self._child.stderr.readline()
            assert said, "it has ended"
            assert "Traceback" not in said
            assert json.loads(said)["level"] in ("info", "warning") or NOT_READ_AGAIN in said

    def status(self, context: ssl.SSLContext, token: str) -> int:
        """Of an event on a new connection; 0 where the handshake or the connection ends without an answer."""
        try:
            client = RawClient(self.address, context)
        except OSError:
            return 0
        with client:
            return status(client, token)


class Sender(threading.Thread):
    """Sends events one after another on a kept connection, by a certificate and a token that are always good.

    statuses: of answers.  crossed: how many requests met the end of their connection, and were sent again on another;
    no answer had come then.
    """

    def __init__(self, server: Process, context: ssl.SSLContext, is_over: threading.Event) -> None:
        super().__init__(name="sender")
        self._server, self._context, self._is_over = server, context, is_over
        self.statuses: list[int] = []
        self.crossed = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._send()
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.failure = error

    def _send(self) -> None:
        client = RawClient(self._server.address, self._context)
        try:
            while not self._is_over.is_set():
                for _ in range(ATTEMPTS):
                    found = status(client, "kept")
                    if found:
                        break
                    self.crossed += 1
                    client.socket.close()
                    client = self._connected()
                self.statuses.append(found)
        finally:
            client.socket.close()

    def _connected(self) -> RawClient:
        for _ in range(ATTEMPTS):
            with contextlib.suppress(OSError):
                return RawClient(self._server.address, self._context)
            self.crossed += 1
        raise AssertionError("no connection comes about")


def check_swap(server: Process, world: World, swap: int, kept: dict[str, RawClient]) -> None:
    """After a swap those who were good and are not are out, on connections that were there too."""
    now, before = world.now(swap), world.now(swap + 1)
    assert [status(client, "kept") for client in kept.values()] == [0] * len(kept), "a kept connection"
    assert server.status(world.contexts[now], now) == 200
    assert server.status(world.contexts["kept"], now) == 200
    assert server.status(world.contexts["kept"], before) == 401
    assert server.status(world.contexts[before], "kept") == 0
    assert server.status(world.contexts["taken back"], "kept") == (0 if swap % 2 else 200)


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("swaps", seeds([24], [1_000]))
def test_certificates_and_tokens_are_swapped_under_load(tmp_path: Path, swaps: int) -> None:
    world = World(tmp_path / "files")
    with process(
        tmp_path / "data",
        "--config",
        str(world.config),
        before=AS_A_SERVICE,
        context=world.contexts["kept"],
    ) as (child, client):
        assert isinstance(child, subprocess.Popen)
        server, is_over = Process(child, client), threading.Event()
        senders = [Sender(server, world.contexts["kept"], is_over) for _ in range(2)]
        for sender in senders:
            sender.start()
        try:
            for swap in range(1, swaps + 1):
                with contextlib.ExitStack() as held:
                    # Of who is good until now, and will not be.
                    shown = [world.now(swap + 1), *(["taken back"] if swap % 2 else [])]
                    kept = {
                        name: held.enter_context(RawClient(server.address, world.contexts[name]))
                        for name in shown
                    }
                    assert [status(each, "kept") for each in kept.values()] == [200] * len(kept)
                    world.write(swap)
                    server.hang_up(READ_AGAIN)
                    check_swap(server, world, swap, kept)
                # A broken file changes nothing.
                world.write(swap + 1, broken=True)
                server.hang_up(NOT_READ_AGAIN)
                assert server.status(world.contexts[world.now(swap)], world.now(swap)) == 200
                assert server.status(world.contexts[world.now(swap + 1)], "kept") == 0
        finally:
            is_over.set()
            for sender in senders:
                sender.join()
        for sender in senders:
            if sender.failure is not None:
                raise sender.failure
            assert set(sender.statuses) == {200}
            assert len(sender.statuses) > swaps
            # At most the request that is on its way, and the connection in place of that one, meet a swap.
            assert sender.crossed <= 2 * swaps
        assert child.poll() is None


def test_who_asks_a_busy_event_loop_learns_that_it_has_not_come_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on, is_called = threading.Event(), threading.Event()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        assert service._in_loop(loop, lambda: None)
        loop.call_soon_threadsafe(go_on.wait, PATIENCE_S)
        monkeypatch.setattr(service, "_IN_LOOP_S", 0.01)
        assert not service._in_loop(loop, is_called.set)
        assert not is_called.is_set()
        go_on.set()
        # It has not forgotten.
        assert is_called.wait(PATIENCE_S)
    finally:
        go_on.set()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_who_asks_an_event_loop_that_has_ended_learns_it() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    assert not service._in_loop(loop, lambda: None)
