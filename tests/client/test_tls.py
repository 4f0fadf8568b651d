"""TLS of the client and of the commands: --ca, --cert, --key, and what goes wrong in words."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from railgun.cli.main import main
from railgun.client.client import Client
from railgun.client.errors import ClientError, ConnectionLostError, UnreachableError
from railgun.client.tls import client_context
from railgun.config.settings import TlsSettings
from tests.certificates import Authority, Pair, encrypted
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server, server


class World:
    """A server with TLS that asks for certificates of clients, and a good one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.servers, self.clients = folder, Authority(folder, "servers"), Authority(folder, "c")
        self.shown, self.good = self.servers.pair(), self.clients.pair()
        self.both = folder / "both.pem"
        self.both.write_bytes(self.good.key.read_bytes() + self.good.certificate.read_bytes())
        self.running: Server

    @property
    def url(self) -> str:
        return self.running.service.url

    def client(self, pair: Pair | None = None, url: str | None = None) -> Client:
        given = {} if pair is None else {"cert": pair.certificate, "key": pair.key}
        return Client(url or self.url, ca=self.servers.file, patience_s=0.0, **given)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    made = World(folder)
    tls = TlsSettings(str(made.shown.certificate), str(made.shown.key), str(made.clients.file))
    context = made.servers.client_context(made.good)
    with server(folder / "data", tls=tls, anonymous=True, context=context) as made.running:
        made.running.define(PAYMENTS)
        yield made


def test_a_client_with_a_certificate(world: World) -> None:
    with world.client(world.good) as client:
        assert [each["name"] for each in client.streams()] == ["payments"]
    with Client(world.url, ca=world.servers.file, cert=world.both) as client:
        assert client.is_ready()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            {},
            UnreachableError,
            "the server's certificate was refused: unable to get local issuer certificate",
        ),
        ({"ca": "servers"}, ClientError, "a client's certificate is needed"),
        ({"ca": "servers", "cert": "wrong"}, ConnectionLostError, "the connection was lost"),
    ],
)
def test_whom_nobody_lets_in(
    world: World, given: dict[str, str], error: type[Exception], message: str
) -> None:
    wrong = Authority(world.folder, "wrong").pair()
    wrong.key.write_bytes(wrong.key.read_bytes() + wrong.certificate.read_bytes())
    files = {"servers": world.servers.file, "wrong": wrong.key}
    with (
        Client(world.url, patience_s=0.0, **{name: files[of] for name, of in given.items()}) as client,
        pytest.raises(error, match=message),
    ):
        client.streams()


def test_a_server_that_speaks_no_tls(world: World, tmp_path: Path) -> None:
    with server(tmp_path / "data") as plain:
        url = plain.service.url.replace("http://", "https://")
        with world.client(url=url) as client, pytest.raises(UnreachableError, match="write http://"):
            client.streams()


def test_files_that_cannot_be_used(world: World) -> None:
    other, locked = world.clients.pair(), world.folder / "locked.pem"
    locked.write_bytes(encrypted(world.good.key, "a-secret") + world.good.certificate.read_bytes())
    empty = world.folder / "empty.pem"
    empty.write_text("")
    ca, url = world.servers.file, "https://127.0.0.1"
    for given, message in (
        ((url, empty, None, None), "it holds no certificate of a CA in PEM"),
        ((url, ca, other.certificate, world.good.key), "the key is not that of the certificate"),
        ((url, ca, empty, None), "it holds no certificate and key in PEM"),
        ((url, ca, locked, None), "the key is encrypted; decrypt it"),
        ((url, ca, None, world.good.key), "a key goes with a certificate"),
        ((url, "/none", None, None), "/none: No such file or directory"),
        ((url, ca, "/none", None), "/none: No such file or directory"),
        (("http://127.0.0.1", ca, None, None), "ca is for TLS: write the address with https://"),
    ):
        with pytest.raises(ClientError) as raised:
            client_context(*given)
        assert message in str(raised.value)
        assert "a-secret" not in str(raised.value)


def test_commands(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every one that talks to a server."""
    definitions, events = tmp_path / "d.toml", tmp_path / "e.ndjson"
    definitions.write_text(PAYMENTS)
    events.write_text('{"tx_id": "a", "ts": 1700000000000, "card": "c", "amount": 1}\n')
    trusted = ["--url", world.url, "--ca", str(world.servers.file)]
    shown = ["--cert", str(world.good.certificate), "--key", str(world.good.key)]
    for words, code in (
        (["apply", str(definitions)], 0),
        (["score", "payments", str(events)], 0),
        (["status"], 0),
        (["log"], 0),
        # They answer only in a cluster.
        (["cluster"], 2),
        (["drain", "node"], 1),
        (["undrain", "node"], 2),
    ):
        assert main([*words, *trusted, *shown]) == code, words
        said = capsys.readouterr().err
        assert "certificate" not in said
        assert main([*words, *trusted]) in (1, 2)
        assert "a client's certificate is needed" in capsys.readouterr().err


def test_the_key_of_values_is_another(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """`railgun values --key card=c1`: a private key is in the file of --cert, or that of --cert-key."""
    words = ["values", "payments", "--key", "card=c", "--url", world.url, "--ca", str(world.servers.file)]
    assert main([*words, "--cert", str(world.both)]) == 0
    shown = ["--cert", str(world.good.certificate)]
    assert main([*words, *shown, "--cert-key", str(world.good.key)]) == 0
    assert main([*words, *shown]) == 2
    assert main(words) == 2
