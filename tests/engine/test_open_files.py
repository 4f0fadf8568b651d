"""The limit of open files: streams that do not fit are refused, and harm nothing."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import railgun
from frontend.embedded.problems import as_problem
from railgun.cli.open_files import raise_open_files_limit
from railgun.engine.errors import OpenFilesError, translated
from railgun.messaging.errors import TransportIOError

DEFINITIONS = """
[streams.{name}]
time = "ts"
partitioners = ["card"]
partitions = {partitions}
[streams.{name}.fields]
ts = "timestamp"
card = "string"
"""


def defined(name: str, partitions: int) -> str:
    return DEFINITIONS.format(name=name, partitions=partitions)


@pytest.fixture
def limit() -> Iterator[Callable[[int], None]]:
    """Sets the soft limit for the time of a test."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda soft: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_stream_that_does_not_fit_is_refused_before_anything_is_made(
    tmp_path: Path, limit: Callable[[int], None]
) -> None:
    limit(1024)
    with railgun.Engine(tmp_path) as engine:
        engine.apply(defined("small", 1))
        with pytest.raises(
            OpenFilesError, match=r"its 300 tasks need .* limit is 1024: raise it \(ulimit -n\)"
        ) as caught:
            engine.apply(defined("large", 300))
        assert as_problem(caught.value).problem.status == 422
        assert not (tmp_path / "streams" / "large").exists()
        assert engine.failure is None
        assert [each.name for each in engine.streams()] == ["small"]
        assert engine.score("small", {"ts": 10**12, "card": "a"})["metrics"] == {}
    with railgun.Engine(tmp_path) as engine:
        assert [each.name for each in engine.streams()] == ["small"]


def test_a_folder_that_does_not_fit_says_so_and_opens_later(
    tmp_path: Path, limit: Callable[[int], None]
) -> None:
    with railgun.Engine(tmp_path) as engine:
        engine.apply(defined("s", 6))
    limit(len(os.listdir("/proc/self/fd")) + 40)
    with pytest.raises(OpenFilesError, match="ulimit -n"):
        railgun.Engine(tmp_path)
    limit(1024)
    with railgun.Engine(tmp_path) as engine:
        assert [each.name for each in engine.streams()] == ["s"]


def test_the_remedy_for_too_many_open_files_is_not_the_disk() -> None:
    text = os.strerror(errno.EMFILE)
    log = TransportIOError(
        "data/log", f"write: IO error: {text}", "Check the disk and its free space, then start again"
    )
    for error in (log, OSError(errno.EMFILE, text, "data/x")):
        message = str(translated(error))
        assert message.endswith("; raise the limit of open files (ulimit -n), then start again")
        assert "disk" not in message


def test_a_server_raises_its_limit(limit: Callable[[int], None]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit(256)
    raise_open_files_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
