"""URLs with a user and a password: what is sent of them, and what is printed."""

import pytest

from railgun.urls import address_of, shown_url, with_shown_urls


@pytest.mark.parametrize(
    ("url", "plain", "credentials"),
    [
        ("https://host:1/x?y=1", "https://host:1/x?y=1", None),
        ("https://user:pw@host:1/x?y=1", "https://host:1/x?y=1", ("user", "pw")),
        ("https://user@host", "https://host", ("user", "")),
        ("https://us%40er:p%2Fw%3A@[::1]:8081/x", "https://[::1]:8081/x", ("us@er", "p/w:")),
        ("https://user:p@:w@host", "https://host", ("user", "p@:w")),
    ],
)
def test_a_url_is_taken_apart(url: str, plain: str, credentials: tuple[str, str] | None) -> None:
    assert address_of(url) == (plain, credentials)


@pytest.mark.parametrize(
    "url", ["https://user:pw/secret@host", "https://user:pw#secret@host", "https://[user:secret@host"]
)
def test_what_cannot_be_taken_apart_is_not_told(url: str) -> None:
    with pytest.raises(ValueError, match="it ") as caught:
        address_of(url)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host:1/x", "https://host:1/x"),
        ("https://user:secret@host:1/x", "https://host:1/x"),
        ("HTTPS://user:sec://ret@host", "HTTPS://host"),
        ("htps://user:se@cr/et#@host", "htps://host"),
        ("https:/user:secret@host", "host"),
        ("user:sec ret@host/x", "host/x"),
        ("none", "none"),
    ],
)
def test_what_is_shown_of_a_url(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_urls_in_texts_of_others() -> None:
    text = "[ERROR] from/to central (https://user:se@cret@host/x): refused, see a@b"
    assert with_shown_urls(text) == "[ERROR] from/to central (https://host/x): refused, see a@b"
