"""The configuration read again: tokens as a whole, or not at all."""

import logging
import signal
from functools import partial
from pathlib import Path

import pytest

from railgun.access.guard import Guard
from railgun.access.tokens import hash_of
from railgun.config.access import guard_of
from railgun.config.loading import load_settings
from railgun.config.reloading import Reload, differences, hangup_ends_it
from railgun.config.settings import Settings


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
        self._reload = Reload(settings, partial(load_settings, file))

    def write(self, text: str) -> None:
        self.file.write_text(text)

    def reloaded(self, text: str) -> str:
        """What the log says of a reload of other text."""
        self.write(text)
        self._caplog.clear()
        self._reload(self.guard, None)
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
        (f"[http]\nprot = 1\n{lines('c')}", "http.prot: unknown key"),
        (lines("c") + lines("d").replace("sha256", "sha"), "1.sha: unknown key"),
        (f"[http]\nanonymous = true\n{lines('c')}", "http.anonymous"),
        (f"[http]\ntokens_file = '/none'\n{lines('c')}", "/none"),
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


def test_tokens_that_end_are_warned_of(configured: Configured) -> None:
    assert "the token c has expired" in configured.reloaded(lines("c", expires="2020-01-01T00:00:00Z"))


def test_the_first_tokens(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    configured = Configured(tmp_path / "r.toml", "[http]\nanonymous = true\n", caplog)
    assert "1 token" in configured.reloaded(lines("a"))
    assert configured.names == ["a"]


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
