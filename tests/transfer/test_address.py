"""Where a node serves snapshots: on loopback with nothing set, beyond it only with a certificate or by an order."""

import socket
from dataclasses import replace

import pytest

from railgun.config.kinds import ConfigError
from railgun.config.settings import ClusterSettings
from railgun.transfer import address
from railgun.transfer.address import check_transfer, listen

_LOCAL = ClusterSettings()


def _url(cluster: ClusterSettings) -> str:
    found = listen(cluster)
    assert found.socket is not None
    port = found.socket.getsockname()[1]
    found.socket.close()
    return found.url.replace(f":{port}", ":PORT")


def test_on_loopback_nothing_has_to_be_set() -> None:
    assert _url(_LOCAL) == "http://127.0.0.1:PORT"
    assert _url(replace(_LOCAL, transfer="127.0.0.1:0")) == "http://127.0.0.1:PORT"
    assert _url(replace(_LOCAL, transfer_certificate="x", transfer_key="x")) == "https://127.0.0.1:PORT"
    assert _url(replace(_LOCAL, transfer_advertised="db1:7000")) == "http://db1:7000"


def test_beyond_loopback_nothing_is_served_in_clear_text_unless_that_is_meant() -> None:
    beyond = replace(_LOCAL, transfer="0.0.0.0:0")
    found = listen(beyond)
    assert (found.socket, found.url) == (None, "")
    assert "cluster.transfer_certificate" in found.reason
    assert "\n" not in found.reason
    assert _url(replace(beyond, transfer_clear_text=True)) == "http://127.0.0.1:PORT"
    assert _url(replace(beyond, transfer_certificate="x", transfer_key="x")) == "https://127.0.0.1:PORT"


def test_auto_is_the_address_that_reaches_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "_local_host", lambda broker: "192.0.2.7")
    assert listen(_LOCAL).reason.startswith("192.0.2.7 can be reached by other machines")


@pytest.mark.parametrize(
    ("brokers", "shown"),
    [("a:1, b:1", "127.0.0.1"), ("a:1,c:1", "192.0.2.7"), ("c:1", "192.0.2.7")],
)
def test_a_broker_on_this_machine_does_not_hide_others(
    monkeypatch: pytest.MonkeyPatch, brokers: str, shown: str
) -> None:
    """Each list of brokers may begin with the one beside the node."""
    hosts = {"c:1": "192.0.2.7"}
    monkeypatch.setattr(address, "_local_host_to", lambda broker: hosts.get(broker, "127.0.0.1"))
    served = f"http://{shown}:" if shown == "127.0.0.1" else f"{shown} can be reached by other machines"
    found = listen(replace(_LOCAL, broker=brokers))
    if found.socket is not None:
        found.socket.close()
    assert (found.url or found.reason).startswith(served)


def test_a_port_in_use_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as used, pytest.raises(OSError, match="in use"):
        listen(replace(_LOCAL, transfer=f"127.0.0.1:{used.getsockname()[1]}"))


@pytest.mark.parametrize(
    ("other", "place"),
    [
        ({"transfer": "somewhere"}, "cluster.transfer"),
        ({"transfer": "host:99999"}, "cluster.transfer"),
        ({"transfer_advertised": "host"}, "cluster.transfer_advertised"),
        ({"transfer_certificate": "c.pem"}, "cluster.transfer_certificate"),
        ({"transfer_key": "k.pem"}, "cluster.transfer_key"),
    ],
)
def test_settings_that_do_not_fit_are_refused(other: dict[str, str], place: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_transfer(replace(_LOCAL, **other))
    assert raised.value.place == place
