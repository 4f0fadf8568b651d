"""Whether a server on this machine lives: `python -m railgun.health`, for health checks of containers.

It asks the address in RAILGUN_HEALTH_URL, and the same over TLS where that is spoken there. The exit code is 0 where it
is well, else 1, with a line on stderr. The certificate is not verified: it is made for other names than this machine's
own address, nothing secret is sent, and one that has run out is no reason to start the server again.
"""

import http.client
import os
import ssl
import sys
import urllib.error
import urllib.request

URL_VARIABLE = "RAILGUN_HEALTH_URL"
DEFAULT_URL = "http://127.0.0.1:8080/healthz"
_WITHIN_S = 2.0


def check(url: str) -> None:
    """Ask a server. Raises OSError or HTTPException where it does not answer with success."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        urllib.request.urlopen(url, timeout=_WITHIN_S, context=context).close()
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException):
        # Where TLS is spoken, the server closes the connection.
        if not url.startswith("http://"):
            raise
        check("https://" + url.removeprefix("http://"))


def main() -> int:
    """The exit code."""
    url = os.environ.get(URL_VARIABLE, DEFAULT_URL)
    try:
        check(url)
    except (OSError, http.client.HTTPException, ValueError) as error:
        sys.stderr.write(f"{url}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
