"""What the health check of containers says where it fails."""

import pytest

from railgun import health


@pytest.mark.parametrize(
    "url",
    [
        "http://user:secret@127.0.0.1:1/healthz",
        "http://user:sec/ret@127.0.0.1:1/healthz",
        "http:/user:secret@127.0.0.1:1/healthz",
    ],
)
def test_a_password_in_its_address_is_not_told(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(health.URL_VARIABLE, url)
    assert health.main() == 1
    said = capsys.readouterr().err
    assert said.endswith("127.0.0.1:1/healthz: it has an @, and takes no user or password\n")
    assert "sec" not in said


def test_an_address_that_nobody_listens_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(health.URL_VARIABLE, "http://127.0.0.1:1/healthz")
    assert health.main() == 1
    assert "http://127.0.0.1:1/healthz: [Errno " in capsys.readouterr().err
