"""The address at which a node serves snapshots, and why it serves none.

The transfer process uses it, and `railgun node` checks it at the start.
"""

import socket
from typing import NamedTuple

from railgun.access.binding import is_loopback
from railgun.config.kinds import ConfigError
from railgun.config.settings import NONE, ClusterSettings

AUTO = "auto"
"""The value of `cluster.transfer` that stands for the local address which reaches the broker, and any free port."""

_ANY = ("0.0.0.0", "::")
_PORTS = 1 << 16


class Listening(NamedTuple):
    """Where snapshots are served. socket: None if they are not.  url: for other nodes.  reason: why none is served."""

    socket: socket.socket | None
    url: str
    reason: str


def check_transfer(cluster: ClusterSettings) -> None:
    """Raise ConfigError if the settings of transfers do not fit together."""
    if cluster.transfer != AUTO:
        _host_and_port("cluster.transfer", cluster.transfer)
    if cluster.transfer_advertised != NONE:
        _host_and_port("cluster.transfer_advertised", cluster.transfer_advertised)
    for one, other in (("certificate", "key"), ("key", "certificate")):
        if getattr(cluster, f"transfer_{one}") != NONE and getattr(cluster, f"transfer_{other}") == NONE:
            raise ConfigError(
                f"cluster.transfer_{one}",
                f"it goes with cluster.transfer_{other}, which is not set; set it too",
            )


def listen(cluster: ClusterSettings) -> Listening:
    """Open the port, if the settings allow that. Raises OSError if it is in use, or if the broker's name is unknown."""
    host, port = _local_host(cluster.broker), 0
    if cluster.transfer != AUTO:
        host, port = _host_and_port("cluster.transfer", cluster.transfer)
    family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    address, has_tls = str(where[0]), cluster.transfer_certificate != NONE
    if not has_tls and not cluster.transfer_clear_text and not is_loopback(address):
        return Listening(
            None,
            "",
            f"{address} can be reached by other machines, and there is no certificate: set "
            "cluster.transfer_certificate and cluster.transfer_key, or, on a network that nobody else reads, "
            "cluster.transfer_clear_text = true",
        )
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(where)
        opened.listen()
    except BaseException:
        opened.close()
        raise
    shown = _local_host(cluster.broker) if address in _ANY else host
    advertised = f"[{shown}]" if ":" in shown else shown
    advertised = f"{advertised}:{opened.getsockname()[1]}"
    if cluster.transfer_advertised != NONE:
        advertised = cluster.transfer_advertised
    return Listening(opened, f"{'https' if has_tls else 'http'}://{advertised}", "")


def _local_host(brokers: str) -> str:
    """Return the local address from which a broker is reached: one for other machines, if any broker is on another one.

    Nothing is sent. Raises OSError.
    """
    found = [_local_host_to(each.strip()) for each in brokers.split(",")]
    return next((each for each in found if not is_loopback(each)), found[0])


def _local_host_to(broker: str) -> str:
    host, port = _host_and_port("cluster.broker", broker)
    family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(where)
        return str(probe.getsockname()[0])


def _host_and_port(place: str, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and int(port) < _PORTS):
        raise ConfigError(place, f"HOST:PORT belongs here, not {text[:80]!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)
