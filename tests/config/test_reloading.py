"""The configuration read again: tokens as a whole, or not at all."""

import logging
import signal
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from railgun.access.guard import Guard
from railgun.access.tls import Tls
from railgun.access.tokens import hash_of
from railgun.config.access import guard_of, tls_of
from railgun.config.hangup import hangup_ends_it
from railgun.config.loading import load_settings
from railgun.config.reloading import Reload, differences
from railgun.config.settings import Settings
from tests.certificates import DAY, Authority


def lines(*names: str, **more: str) -> str:
    extra = "".join(f"{key} = {value}\n" for key, value in more.items())
    return "".join(
        f'[[http.tokens]]\nname = "{name}"\nsha256 = ["{hash_of(name.encode()).hex()}"]\nscopes = ["*"]\n{extra}'
        for name in names
    )


class Configured:
    """A process with a configuration file: its guard, and what its log said."""

    def __init__(self, file: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
        self.file, self._caplog = file, caplog
        caplog.set_level(logging.INFO)
        self.write(text)
        settings = load_settings(file)
        self.guard = guard_of(settings.http)
        self.tls: Tls | None = None
        self._reload = Reload(settings, partial(load_settings, file))

    def write(self, text: str) -> None:
        self.file.write_text(text)

    def reloaded(self, text: str) -> str:
        """What the log says of a reload of other text."""
        self.write(text)
        self._caplog.clear()
        self._reload(self.guard, self.tls)
        return "\n".join(record.getMessage() for record in self._caplog.records)

    @property
    def loggers(self) -> list[str]:
        return [record.name for record in self._caplog.records]

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.guard.tokens]


@pytest.fixture
def configured(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Configured:
    return Configured(tmp_path / "r.toml", f"[http]\nport = 1\n{lines('a', 'b')}", caplog)


def test_tokens_are_taken_over(configured: Configured) -> None:
    assert (
        configured.reloaded(f"[http]\nport = 1\n{lines('b', 'c')}")
        == "the configuration was read again: 2 tokens"
    )
    assert configured.loggers == ["railgun.audit"]
    assert configured.names == ["b", "c"]


def test_what_else_has_changed_is_said_and_not_taken_over(configured: Configured) -> None:
    text = f"[http]\nport = 2\nhosts = ['x']\n[engine]\ndurability = 'os'\n[kafka]\nx = 1\n{lines('a')}"
    said = configured.reloaded(text)
    assert "at the next start only: http.port, http.hosts, engine.durability, kafka" in said
    assert configured.names == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[http", "it is no TOML"),
        (f"a = {'[' * 3_000}{']' * 3_000}", "it is no TOML"),
        (f"a = {'9' * 5_000}", "it is no TOML"),
        ("[http]\ntokens_file = '/a\\u0000'\n".replace("'", '"'), "null byte"),
        (f"[http]\nprot = 1\n{lines('c')}", "http.prot: unknown key"),
        (lines("c") + lines("d").replace("sha256", "sha"), "1.sha: unknown key"),
        (f"[http]\nanonymous = true\n{lines('c')}", "http.anonymous"),
        (f"[http]\ntokens_file = '/none'\n{lines('c')}", "not read again: /none: No such file or directory;"),
        ("", "there are no tokens any more"),
        ("[http]\nanonymous = true\n", "there are no tokens any more"),
    ],
)
def test_where_anything_is_wrong_nothing_changes(configured: Configured, text: str, message: str) -> None:
    said = configured.reloaded(text)
    assert message in said
    assert "the tokens stay as they were" in said
    assert configured.names == ["a", "b"]
    configured.file.unlink()
    configured._reload(configured.guard, None)
    assert configured.names == ["a", "b"]


def test_a_file_that_others_may_write_by_now(configured: Configured) -> None:
    configured.file.chmod(0o666)
    assert "everybody may write it" in configured.reloaded(lines("c"))
    assert configured.names == ["a", "b"]


class WithTls:
    """A process whose configuration has TLS: its files, and what a reload did."""

    def __init__(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        self.servers, self.clients = Authority(folder, "servers"), Authority(folder, "clients")
        self.crl = folder / "crl.pem"
        self.crl.write_bytes(self.clients.revoking())
        self.pair = self.servers.pair()
        self.configured = Configured(folder / "r.toml", self.text(), caplog)
        tls = tls_of(load_settings(folder / "r.toml").http)
        assert tls is not None
        self.tls = self.configured.tls = tls

    def text(self, *without: str, tokens: str = "a", version: str = "1.3", **more: object) -> str:
        """The configuration. without: keys that are left out."""
        values = {
            "certificate": self.pair.certificate,
            "key": self.pair.key,
            "client_ca": self.clients.file,
            "client_crl": self.crl,
            "min_version": version,
            **more,
        }
        table = "".join(f'{name} = "{value}"\n' for name, value in values.items() if name not in without)
        return f"[http.tls]\n{table}{lines(*tokens)}"


@pytest.fixture
def with_tls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> WithTls:
    return WithTls(tmp_path, caplog)


def test_certificates_and_tokens_are_taken_over_together(with_tls: WithTls) -> None:
    tls, before = with_tls.tls, with_tls.tls.certificates
    told: list[bool] = []
    # By then the tokens are in force too.
    tls.on_new_clients = lambda: told.append(with_tls.configured.names == ["b", "c"])
    with_tls.pair = with_tls.servers.pair(until=20 * DAY)
    with_tls.crl.write_bytes(with_tls.clients.revoking(with_tls.clients.pair()))
    said = with_tls.configured.reloaded(with_tls.text(tokens="bc"))
    assert said == "the configuration was read again: 2 tokens, and certificates"
    assert tls.certificates.context is not before.context
    assert tls.certificates.ends_s["server"] == with_tls.pair.leaf.not_valid_after_utc.timestamp()
    assert told == [True]
    assert with_tls.configured.guard._state.needs_certificate
    with_tls.pair = with_tls.servers.pair(until=2 * DAY)
    assert "runs out in 2.0 days" in with_tls.configured.reloaded(with_tls.text())
    assert told == [True]


def test_tokens_change_where_certificates_do_and_nowhere_else(with_tls: WithTls) -> None:
    """The server sees to it that nothing is served meanwhile."""
    tls, seen = with_tls.tls, list[tuple[list[str], bool]]()
    before = tls.certificates

    def uninterrupted(function: Callable[[], None]) -> bool:
        seen.append((with_tls.configured.names, tls.certificates is before))
        function()
        seen.append((with_tls.configured.names, tls.certificates is before))
        return True

    tls.uninterrupted = uninterrupted
    with_tls.configured.reloaded(with_tls.text(tokens="bc"))
    assert seen == [(["a"], True), (["b", "c"], False)]


def test_what_is_not_in_force_is_not_said_to_be(with_tls: WithTls) -> None:
    waiting: list[Callable[[], None]] = []

    def uninterrupted(function: Callable[[], None]) -> bool:
        waiting.append(function)
        return False

    with_tls.tls.uninterrupted = uninterrupted
    said = with_tls.configured.reloaded(with_tls.text(tokens="bc"))
    assert said.startswith(
        "the configuration was read again, and is not in force yet: 2 tokens, and certificates; "
    )
    assert with_tls.configured.names == ["a"]
    waiting.pop()()
    assert with_tls.configured.names == ["b", "c"]


def test_a_bad_file_changes_neither_certificates_nor_tokens(with_tls: WithTls, tmp_path: Path) -> None:
    before, other = with_tls.tls.certificates, with_tls.servers.pair()
    half = tmp_path / "half.pem"
    half.write_bytes(with_tls.pair.certificate.read_bytes()[:-100])
    expired = with_tls.servers.pair(since=-3 * DAY, until=-DAY)
    for text, message in (
        (with_tls.text(tokens="bc", key=other.key), "it is not the key of the first certificate"),
        (with_tls.text(tokens="bc", certificate=half), "it holds no certificate in PEM"),
        (with_tls.text(tokens="bc", certificate=expired.certificate, key=expired.key), "ran out at"),
        (with_tls.text(tokens="bc", client_ca=half), "it holds no certificate in PEM"),
        (with_tls.text(tokens="bc", client_crl="/none"), "/none"),
        (with_tls.text("key", tokens="bc"), "it goes with http.tls.key"),
        (with_tls.text(tokens=""), "there are no tokens"),
        (with_tls.text("client_crl", tokens="bc"), "there is no http.tls.client_crl any more"),
        (with_tls.text("client_ca", "client_crl", tokens="bc"), "there is no http.tls.client_ca any more"),
        (with_tls.text(tokens="bc")[:-5], "it is no TOML"),
    ):
        said = with_tls.configured.reloaded(text)
        assert message in said
        assert "the tokens and certificates stay as they were" in said
        assert with_tls.tls.certificates is before
        assert with_tls.configured.names == ["a"]


def test_of_tls_only_files_are_taken_over(with_tls: WithTls) -> None:
    said = with_tls.configured.reloaded(with_tls.text(tokens="b", version="1.2"))
    assert said.endswith("at the next start only: http.tls.min_version")
    assert with_tls.tls.certificates.context.minimum_version is ssl.TLSVersion.TLSv1_3
    said = with_tls.configured.reloaded(lines("c"))
    assert "at the next start only: http.tls.certificate, http.tls.key, http.tls.client_ca" in said
    assert with_tls.configured.names == ["c"]
    assert with_tls.configured.guard._state.needs_certificate


def test_tls_begins_at_the_next_start_only(configured: Configured, with_tls: WithTls) -> None:
    said = configured.reloaded(f"[http]\nport = 1\n{with_tls.text(tokens='c')}")
    assert "at the next start only: http.tls.certificate, http.tls.key" in said
    assert configured.names == ["c"]
    assert not configured.guard._state.needs_certificate


def test_tokens_that_end_are_warned_of(configured: Configured) -> None:
    assert "the token c has expired" in configured.reloaded(lines("c", expires="2020-01-01T00:00:00Z"))


def test_the_first_tokens(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    configured = Configured(tmp_path / "r.toml", "[http]\nanonymous = true\n", caplog)
    assert "1 token" in configured.reloaded(lines("a"))
    assert configured.names == ["a"]


def test_everybody_is_not_kept_out_without_a_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without `anonymous` nothing would change, and the log would say that it was done."""
    configured = Configured(tmp_path / "r.toml", "[http]\nanonymous = true\n", caplog)
    for _ in range(2):
        assert configured.reloaded("") == (
            "there is no http.anonymous any more, and no token; the tokens stay as they were: everybody is let in as "
            "before; configure tokens, or restart the server"
        )
    assert configured.reloaded(lines("a")) == "the configuration was read again: 1 token"
    assert "there are no tokens any more" in configured.reloaded("")


def test_a_limit_does_not_begin_anew(configured: Configured) -> None:
    guard = Guard(now_s=lambda: 0.0, burst_events=10)
    limited = lines("a", limit_per_s="1")
    for text, wait_s in ((limited, 0.0), (limited + lines("b"), 2.0), (lines("a", limit_per_s="2"), 0.0)):
        configured.write(text)
        guard.replace(load_settings(configured.file).http.tokens)
        assert guard.wait_s(guard._state.callers[hash_of(b"a")], 6) == pytest.approx(wait_s)


def test_differences() -> None:
    assert differences(Settings(), Settings()) == []


def test_who_ignores_the_signal_goes_on_doing_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_IGN)
    assert hangup_ends_it()
