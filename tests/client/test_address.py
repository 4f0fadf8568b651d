"""The address of a server, as commands and programs give it."""

import pytest

from railgun.client.address import checked_url, is_local, url_from
from railgun.client.errors import ClientError


@pytest.mark.parametrize(
    ("given", "environment", "url"),
    [
        (None, {}, "http://127.0.0.1:8080"),
        (None, {"RAILGUN_URL": "http://a:1/"}, "http://a:1"),
        ("https://b/x/", {"RAILGUN_URL": "http://a:1"}, "https://b/x"),
    ],
)
def test_the_address(given: str | None, environment: dict[str, str], url: str) -> None:
    assert url_from(given, environment) == url


@pytest.mark.parametrize(
    ("given", "environment", "message"),
    [
        (
            "localhost:8080",
            {},
            "--url: 'localhost:8080' is no address of a server; did you mean http://localhost:8080?",
        ),
        (None, {"RAILGUN_URL": "x"}, "RAILGUN_URL: 'x' is no address of a server; did you mean http://x?"),
        ("http://", {}, "--url: 'http://' names no host; write one as in http://127.0.0.1:8080"),
        ("http://a:0", {}, "--url: 'http://a:0' has no port of a server; they are 1 to 65535"),
        ("http://a:99999", {}, "--url: 'http://a:99999' has no port of a server; they are 1 to 65535"),
        ("http://a:b", {}, "--url: 'http://a:b' is no address of a server: Invalid port: 'b'"),
    ],
)
def test_no_address(given: str | None, environment: dict[str, str], message: str) -> None:
    with pytest.raises(ClientError) as raised:
        url_from(given, environment)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        ("http://127.0.0.1:8080", True),
        ("https://[::1]", True),
        ("http://localhost", True),
        ("http://10.0.0.1", False),
        ("http://localhost.example", False),
    ],
)
def test_a_server_on_this_machine(url: str, is_here: bool) -> None:
    assert is_local(url) == is_here


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2@h:1",
        "me:hunter2@h:1",
        "http://hunter2@h",
        "http://me:hun/ter2@h",
        "https://:hunter2@",
    ],
)
def test_an_address_with_a_password_is_refused_and_not_printed(url: str) -> None:
    for given, environment, place in ((url, {}, "--url"), (None, {"RAILGUN_URL": url}, "RAILGUN_URL")):
        with pytest.raises(ClientError) as raised:
            url_from(given, environment)
        assert str(raised.value) == (
            f"{place}: it has an @, and takes no user or password, which would be seen in lists of processes and in "
            "logs; give a token by --token-file or RAILGUN_TOKEN"
        )
    with pytest.raises(ClientError, match=r"^url: it has an @.*; give a token by token=$"):
        checked_url(url)
