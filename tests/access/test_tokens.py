"""Tokens as a configuration describes them: what is wrong is told with its place, and never with what may be secret."""

import hashlib
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from railgun.access.binding import ExposedError
from railgun.access.rates import Rate
from railgun.access.scopes import ScopeError, check_scope, needs
from railgun.access.token_files import (
    TokenFileError,
    check_nobody_else_writes,
    checked_token,
    client_token,
    read_tokens_file,
)
from railgun.access.tokens import Token, TokenError, hash_of, new_token, read_tokens
from railgun.config.access import check_address, clear_text_warnings, guard_of, tokens_of
from railgun.config.kinds import ConfigError
from railgun.config.loading import load_settings
from railgun.config.settings import HttpSettings, TlsSettings

SECRET = "railgun_not-to-be-seen"
HASH = hashlib.sha256(SECRET.encode()).hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()
TABLE: dict[str, Any] = {"name": "app", "sha256": [HASH], "scopes": ["score:payments"]}
LINES = f'[[http.tokens]]\nname = "app"\nsha256 = ["{HASH}"]\nscopes = ["score:payments"]\n'


def test_new_tokens() -> None:
    made = {new_token() for _ in range(1_000)}
    assert len(made) == 1_000
    assert all(re.fullmatch(r"railgun_[A-Za-z0-9_-]{43}", each) for each in made)
    assert hash_of(SECRET.encode()).hex() == HASH


def test_a_token_with_everything(tmp_path: Path) -> None:
    more = (
        f'sha256 = ["{HASH}", "{OTHER.upper()}"]\nexpires = 2027-01-31T02:00:00+02:00\nlimit_per_s = 5_000\n'
    )
    file = tmp_path / "r.toml"
    file.write_text(f'[[http.tokens]]\nname = "app"\nscopes = ["score:payments", "metrics"]\n{more}')
    (found,) = load_settings(file).http.tokens
    hashes = (bytes.fromhex(HASH), bytes.fromhex(OTHER))
    assert found == Token("app", hashes, ("score:payments", "metrics"), 1_801_353_600.0, 5_000)
    assert tokens_of(load_settings(file).http) == (found,)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": None}, "0.name: it is missing"),
        ({"sha256": None}, "0.sha256: it is missing"),
        ({"scopes": None}, "0.scopes: it is missing"),
        ({"name": "a b"}, "0.name: a name of letters"),
        ({"name": 7}, "0.name: a name of letters"),
        ({"sha256": HASH}, "0.sha256: a list of one hash belongs here"),
        ({"sha256": []}, "0.sha256: a list of one hash"),
        ({"sha256": [HASH, OTHER, HASH]}, "0.sha256: a list of one hash"),
        ({"sha256": [SECRET]}, "0.sha256: 64 hexadecimal digits"),
        ({"sha256": [7]}, "0.sha256: 64 hexadecimal digits"),
        ({"sha256": [HASH, HASH]}, "one sha256 is there twice of app"),
        ({"scopes": []}, "0.scopes: a list of scopes"),
        ({"scopes": "*"}, "0.scopes: a list of scopes"),
        (
            {"scopes": ["scores:payments"]},
            "0.scopes: 'scores:payments' is no scope; did you mean score:payments?",
        ),
        ({"scopes": ["scor:"]}, "0.scopes: 'scor:' is no scope; did you mean score:STREAM?"),
        ({"scopes": ["metric"]}, "0.scopes: 'metric' is no scope; did you mean metrics?"),
        ({"scopes": ["score"]}, "0.scopes: 'score' names no stream; write score:STREAM, or score:* for all"),
        ({"scopes": ["metrics:payments"]}, "0.scopes: 'metrics:payments' is no scope; did you mean metrics?"),
        ({"expires": "2027-01-31"}, "0.expires: a time with its offset belongs here"),
        ({"limit_per_s": 0}, "0.limit_per_s: events per second"),
        ({"limit_per_s": True}, "0.limit_per_s: events per second"),
        ({"scope": ["*"]}, "0.scope: unknown key; did you mean scopes?"),
        ({"token": SECRET}, "0.token: unknown key"),
    ],
)
def test_mistakes(changed: dict[str, Any], message: str) -> None:
    table = {name: value for name, value in (TABLE | changed).items() if value is not None}
    with pytest.raises(TokenError) as raised:
        read_tokens([table])
    assert str(raised.value).startswith(message)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("tables", [None, "x", {}, [1], [TABLE, "x"]])
def test_no_tables(tables: object) -> None:
    with pytest.raises(TokenError, match="tables belong here"):
        read_tokens(tables)


def test_local_times_are_refused(tmp_path: Path) -> None:
    for time in ("2027-01-31T00:00:00", "2027-01-31", "00:00:00"):
        file = tmp_path / "r.toml"
        file.write_text(f"{LINES}expires = {time}\n")
        with pytest.raises(ConfigError, match=r"http\.tokens: 0\.expires: a time with its offset"):
            load_settings(file)


def test_two_tokens_are_two() -> None:
    with pytest.raises(TokenError, match="one name is there twice of app"):
        read_tokens([TABLE, TABLE | {"sha256": [OTHER]}])
    with pytest.raises(TokenError, match="one sha256 is there of app and of other"):
        read_tokens([TABLE, TABLE | {"name": "other"}])


def test_ten_thousand_tokens() -> None:
    tables = [
        TABLE | {"name": f"t{i}", "sha256": [hashlib.sha256(b"%d" % i).hexdigest()]} for i in range(10_000)
    ]
    assert len(read_tokens(tables)) == 10_000


def test_scopes() -> None:
    for good in ("*", "metrics", "operate", "read:*", "score:payments", "define:A_1", "inspect:x"):
        check_scope(good)
    for wrong in (
        "",
        "**",
        "read",
        "read:",
        "read:a b",
        "read:*x",
        "read:1",
        "all",
        "READ:x",
        "operate:*",
        "read:x\n",
    ):
        with pytest.raises(ScopeError):
            check_scope(wrong)
    for wrong in ("read", "read:x", "all:{stream}", "read:{stream", "metrics:{stream}", "*"):
        with pytest.raises(ValueError, match="no scope of a route"):
            needs(wrong)


# --- files -----------------------------------------------------------------------------------------


def test_a_file_of_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(LINES)
    own = read_tokens([TABLE | {"name": "own", "sha256": [OTHER]}])
    settings = HttpSettings(tokens_file=str(file), tokens=own)
    assert [each.name for each in tokens_of(settings)] == ["own", "app"]
    assert [each.name for each in guard_of(settings).tokens] == ["own", "app"]
    with pytest.raises(ConfigError, match="one name is there"):
        tokens_of(HttpSettings(tokens_file=str(file), tokens=read_tokens([TABLE])))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one, and nothing else"),
        ("[http]\ntokens = []\n", "at least one, and nothing else"),
        (f"{LINES}[engine]\n", "nothing else"),
        (f"http.port = 1\n{LINES}", "nothing else"),
        (SECRET, "it is no TOML"),
        (LINES.replace(HASH, SECRET), "http.tokens.0.sha256: 64 hexadecimal digits"),
        ("[[http.tokens]]\n[http.tokens.name]\n", "http.tokens.0.sha256: it is missing"),
    ],
)
def test_files_that_hold_something_else(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(text)
    with pytest.raises(TokenFileError) as raised:
        read_tokens_file(file)
    assert str(raised.value).startswith(f"{file}: ")
    assert message in str(raised.value)
    assert SECRET not in str(raised.value)


def test_files_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_bytes(b"# \xff")
    with pytest.raises(TokenFileError, match="no UTF-8 text"):
        read_tokens_file(file)
    with pytest.raises(OSError):
        read_tokens_file(tmp_path / "none")


def test_files_that_others_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(LINES)
    file.chmod(0o666)
    with pytest.raises(TokenFileError, match="everybody may write it"):
        read_tokens_file(file)
    with pytest.raises(TokenFileError, match="everybody may write it"):
        load_settings(file)
    file.chmod(0o664)
    assert load_settings(file).http.tokens
    # What root owns nobody else can change; what another user owns, they can.
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(file).st_uid + 1)
    if os.stat(file).st_uid == 0:
        check_nobody_else_writes(file)
        os.chown(file, 4_321, -1)
    with pytest.raises(TokenFileError, match="another user"):
        check_nobody_else_writes(file)


def test_a_time_that_is_none_in_utc(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text(f"{LINES}expires = 9999-12-31T23:59:59-12:00\n")
    with pytest.raises(ConfigError, match=r"0\.expires: no calendar has this time in UTC"):
        load_settings(file)


@pytest.mark.parametrize(
    "line",
    [
        "tokens_file = '/t.toml'",
        "anonymous = true",
        "hosts = ['example.com']",
        *(f"tls.{name} = '{value}'" for name, value in asdict(TlsSettings()).items()),
    ],
)
def test_nor_may_others_write_who_gets_in(line: str, tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text(f"[http]\n{line}\n")
    load_settings(file)
    file.chmod(0o666)
    with pytest.raises(TokenFileError, match="everybody may write it"):
        load_settings(file)


def test_a_configuration_is_no_pipe(tmp_path: Path) -> None:
    """What was read once is gone from it: the next reading would find no tokens."""
    os.mkfifo(tmp_path / "r.toml")
    with pytest.raises(ConfigError, match="it is a pipe"):
        load_settings(tmp_path / "r.toml")


def test_a_configuration_without_tokens_may_be_anybodys(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text("[http]\nport = 1\n")
    file.chmod(0o666)
    assert load_settings(file).http.port == 1


def test_the_token_of_a_client(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f" {SECRET}\n")
    assert client_token(file) == SECRET
    for wrong in ("", "\n", f"{SECRET}\n{SECRET}\n", f"name {SECRET}", "ü", "x" * 5_000):
        file.write_text(wrong)
        with pytest.raises(TokenFileError, match="it holds no token") as raised:
            client_token(file)
        assert SECRET not in str(raised.value)
    with pytest.raises(ValueError, match=r"^no token$"):
        checked_token(f"{SECRET} x")


# --- where it may listen ---------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1"])
def test_this_machine(address: str) -> None:
    for settings in (HttpSettings(), HttpSettings(anonymous=True), HttpSettings(tokens=read_tokens([TABLE]))):
        check_address("place", address, settings)
        assert clear_text_warnings("place", address, settings) == []


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1", "fe80::1%eth0", "::ffff:127.0.0.1", "name"])
def test_other_machines(address: str) -> None:
    with pytest.raises(ExposedError, match=r"RAILGUN_HTTP__ANONYMOUS=true"):
        check_address("place", address, HttpSettings())
    check_address("place", address, HttpSettings(anonymous=True))
    guarded = HttpSettings(tokens=read_tokens([TABLE]))
    check_address("place", address, guarded)
    assert "clear text" in clear_text_warnings("place", address, guarded)[0]
    proxied = HttpSettings(tokens=read_tokens([TABLE]), behind_proxy=True)
    assert clear_text_warnings("place", address, proxied) == []


def test_anybody_and_tokens_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match=r"http\.anonymous"):
        guard_of(HttpSettings(anonymous=True, tokens=read_tokens([TABLE])))


# --- rates -----------------------------------------------------------------------------------------


def test_rates() -> None:
    rate = Rate(10, 100, now_s=0.0)
    assert rate.take(100, 0.0) == 0
    assert rate.take(1, 0.0) == pytest.approx(0.1)
    assert rate.take(5, 0.25) == pytest.approx(0.25)
    assert rate.take(5, 0.5) == 0
    # Time that goes back gives nothing, and takes nothing.
    assert rate.take(1, -1_000.0) > 0
    assert rate.take(1, -999.9) == 0
    # Never more than the burst, however long nothing came.
    assert rate.take(100, 10_000.0) == 0
    assert rate.take(1, 10_000.0) > 0


def test_more_than_the_burst_waits_for_a_full_bucket() -> None:
    rate = Rate(10, 100, now_s=0.0)
    assert rate.take(1_000, 0.0) == 0
    assert rate.take(1, 0.0) == pytest.approx(90.1)
    assert rate.take(1, 90.1) == pytest.approx(0.0, abs=1e-6)


def test_a_rate_above_the_burst_is_its_own_burst() -> None:
    assert Rate(1_000, 1, now_s=0.0).take(1_000, 0.0) == 0
