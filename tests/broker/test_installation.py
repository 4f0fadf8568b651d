"""Kafka's jars come whole, as they are pinned, or not at all."""

import base64
import hashlib
import os
import threading
import traceback
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from railgun.broker import download_ways, installation
from railgun.broker.artifacts import Bundle, Jar, locked_jars, unsound
from railgun.broker.download_ways import REPOSITORY_VARIABLE, configured_repository
from railgun.broker.errors import FetchError
from railgun.broker.installation import install

CONTENT = {name: name.encode() * 1_000 for name in ("a", "b", "c")}
JARS = tuple(
    Jar("org.example.x", name, "1.0", hashlib.sha256(content).hexdigest())
    for name, content in CONTENT.items()
)


class _Silent(SimpleHTTPRequestHandler):
    authorizations: ClassVar[set[str | None]] = set()

    def do_GET(self) -> None:
        self.authorizations.add(self.headers.get("Authorization"))
        super().do_GET()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The folder that the repository serves."""
    root = tmp_path / "repository"
    for jar in JARS:
        file = root / jar.path
        file.parent.mkdir(parents=True)
        file.write_bytes(CONTENT[jar.artifact])
    return root


@pytest.fixture
def cache(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and a repository on loopback as the only way to fill it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(published)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv(REPOSITORY_VARIABLE, f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("RAILGUN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(installation, "locked_jars", lambda: JARS)
    yield tmp_path / "cache"
    server.shutdown()
    thread.join()
    server.server_close()


def _install(said: list[str]) -> Path:
    return install(said.append)


def test_it_is_fetched_once(cache: Path, published: Path) -> None:
    said: list[str] = []
    folder = _install(said)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        jar.name: CONTENT[jar.artifact] for jar in JARS
    }
    assert len(said) == 1
    for jar in JARS:
        (published / jar.path).unlink()
    assert _install(said) == folder
    assert len(said) == 1


def test_two_may_ask_at_once(cache: Path) -> None:
    said: list[str] = []
    threads = [threading.Thread(target=_install, args=(said,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 1


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_what_is_not_as_pinned_is_not_installed(cache: Path, published: Path, damage: str) -> None:
    wrong = published / JARS[1].path
    wrong.unlink()
    if damage == "changed":
        wrong.write_bytes(b"something else")
    with pytest.raises(FetchError, match="RAILGUN_MAVEN_REPOSITORY") as caught:
        _install([])
    assert JARS[1].path in caught.value.reason or JARS[1].name in caught.value.reason
    assert [path.name for path in (cache / "kafka").iterdir()] == ["install.lock"]
    wrong.write_bytes(CONTENT["b"])
    assert _install([]).is_dir()


def test_a_folder_that_lost_a_jar_is_fetched_anew(cache: Path) -> None:
    folder = _install([])
    (folder / JARS[0].name).unlink()
    assert unsound(_install([]), JARS) == []


def test_a_repository_that_does_not_answer(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REPOSITORY_VARIABLE, "http://someone:secret@127.0.0.1:1/maven")
    with pytest.raises(FetchError, match=r"127\.0\.0\.1:1") as caught:
        _install([])
    assert "secret" not in str(caught.value)
    monkeypatch.delenv(REPOSITORY_VARIABLE)
    monkeypatch.setenv("HOME", str(cache))
    monkeypatch.setattr(download_ways, "PUBLIC_REPOSITORY", "http://127.0.0.1:1/public")
    with pytest.raises(FetchError, match=r"download from http://127\.0\.0\.1:1/public: "):
        _install([])


def test_without_a_configured_repository_or_maven_the_public_one_is_taken(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download_ways, "PUBLIC_REPOSITORY", os.environ[REPOSITORY_VARIABLE])
    monkeypatch.delenv(REPOSITORY_VARIABLE)
    monkeypatch.setenv("HOME", str(cache))
    assert unsound(_install([]), JARS) == []


def test_a_configured_repository_stands_for_the_public_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    ways = [name for name, _ in download_ways.download_ways(Bundle("x", 1, (), JARS), "https://m.example/x")]
    assert ways == ["download from https://m.example/x"]


@pytest.mark.parametrize(
    "url",
    [
        # Without a port, what stands before the host looks like one.
        "http://someone:secret@127.0.0.1/maven",
        "http://someone:secr/et@127.0.0.1:1/maven",
        "http://someone:secr#et@127.0.0.1:1/maven",
        "http://someone:secret@127.0.0.1:port/maven",
        "htp://someone:secret@127.0.0.1:1/maven",
        "http:/someone:secret@127.0.0.1:1/maven",
        "someone:secret@127.0.0.1:1/maven",
    ],
)
def test_the_password_of_a_repository_is_not_told(
    url: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REPOSITORY_VARIABLE, url)
    said: list[str] = []
    with pytest.raises(FetchError, match=r"127\.0\.0\.1") as caught:
        _install(said)
    assert "secr" not in "".join([*said, *traceback.format_exception(caught.value)])


def test_the_password_of_a_repository_is_sent(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.environ[REPOSITORY_VARIABLE].replace("://", "://someone:se%2Fcret@")
    monkeypatch.setenv(REPOSITORY_VARIABLE, own)
    monkeypatch.setattr(_Silent, "authorizations", set())
    _install([])
    assert _Silent.authorizations == {"Basic " + base64.b64encode(b"someone:se/cret").decode()}


def test_what_maven_says_has_no_password(tmp_path: Path) -> None:
    words = "[ERROR] from/to central (https://someone:secret@127.0.0.1/x): refused"
    with pytest.raises(OSError, match="central") as caught:
        download_ways._run(["sh", "-c", f"echo '{words}'; exit 1"])
    assert str(caught.value) == "[ERROR] from/to central (https://127.0.0.1/x): refused"


def test_the_lock_names_whole_files_once() -> None:
    jars = locked_jars()
    assert len(jars) == len({jar.name for jar in jars}) == 46
    assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in jars)
    assert JARS[0].path == "org/example/x/a/1.0/a-1.0.jar"


@pytest.mark.parametrize(
    ("mirrors", "expected"),
    [
        ("", None),
        (
            "<mirror><mirrorOf>central</mirrorOf><url>https://m.example/x/</url></mirror>",
            "https://m.example/x",
        ),
        ("<mirror><mirrorOf>*</mirrorOf><url>https://m.example</url></mirror>", "https://m.example"),
        ("<mirror><mirrorOf>*,!central</mirrorOf><url>https://m.example</url></mirror>", None),
        ("<mirror><mirrorOf>other</mirrorOf><url>https://m.example</url></mirror>", None),
        (
            "<mirror><mirrorOf>a, external:*</mirrorOf><url> https://m.example </url></mirror>",
            "https://m.example",
        ),
    ],
)
@pytest.mark.parametrize("namespace", ["", ' xmlns="http://maven.apache.org/SETTINGS/1.0.0"'])
def test_a_mirror_of_maven_is_honoured(
    mirrors: str, expected: str | None, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(REPOSITORY_VARIABLE, raising=False)
    assert configured_repository(tmp_path) is None
    (tmp_path / ".m2").mkdir()
    settings = tmp_path / ".m2" / "settings.xml"
    settings.write_text(f"<settings{namespace}><mirrors>{mirrors}</mirrors></settings>")
    assert configured_repository(tmp_path) == expected
    settings.write_text("<settings>")
    with pytest.raises(FetchError, match=r"settings\.xml"):
        configured_repository(tmp_path)
