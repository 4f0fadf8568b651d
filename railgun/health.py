"""Checks whether a server on this machine lives: `python -m railgun.health`, for health checks of containers.

It asks the address in RAILGUN_HEALTH_URL, without a proxy. It uses TLS for an address of http:// if the environment has
the settings of TLS. If only a file has them, it uses TLS after the server has answered 400, or has not answered.

The exit code is 0 if the server is well, else 1, with a line on stderr. The certificate is not verified. It is made for
other names than this machine's own address, and nothing secret is sent. An expired one is no reason for a restart.
"""

import http.client
import os
import ssl
import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

from railgun.urls import shown_url

URL_VARIABLE = "RAILGUN_HEALTH_URL"
DEFAULT_URL = "http://127.0.0.1:8080/healthz"
# The variable of the setting http.tls.certificate, and the value of a setting without a file.
CERTIFICATE_VARIABLE, _NONE = "RAILGUN_HTTP__TLS__CERTIFICATE", "none"
_WITHIN_S = 2.0


class _StatusError(ValueError):
    """A server has answered with a status that is no success."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"status {status}")


def check(url: str, environment: Mapping[str, str] = os.environ) -> None:
    """Ask a server. Raises OSError, HTTPException or ValueError if it does not answer with success."""
    secured = url.replace("http://", "https://", 1)
    if secured != url and environment.get(CERTIFICATE_VARIABLE, _NONE) == _NONE:
        try:
            _ask(url)
            return
        except _StatusError as error:
            # A port that speaks TLS answers 400 to a request in clear text.
            if error.status != http.HTTPStatus.BAD_REQUEST:
                raise
        except (OSError, http.client.HTTPException):
            # Other servers with TLS close the connection.
            pass
    _ask(secured)


def _ask(url: str) -> None:
    if "@" in url:
        # No part of the URL may get into the messages of further errors.
        raise ValueError("it has an @, and takes no user or password")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is no address of a server; write one as in " + DEFAULT_URL)
    if parts.scheme == "https":
        # It has no authorities of this machine: reading them takes longer than everything else here.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=_WITHIN_S, context=context
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=_WITHIN_S)
    try:
        connection.request("GET", parts.path or "/")
        status = connection.getresponse().status
    finally:
        connection.close()
    if not 200 <= status < 300:
        raise _StatusError(status)


def main() -> int:
    """Ask the server, and return the exit code."""
    url = os.environ.get(URL_VARIABLE, DEFAULT_URL)
    try:
        check(url)
    except (OSError, http.client.HTTPException, ValueError) as error:
        sys.stderr.write(f"{shown_url(url)}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
