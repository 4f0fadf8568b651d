"""A real schema registry, Apicurio's, with its schemas in memory. It is fetched once, 109 MB, and needs Java 17.

It has Avro and JSON Schema by Confluent's protocol. It serves no descriptors of Protobuf (`schema_registry.py` does).
"""

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from railgun.broker.commands import HOST, find_java
from railgun.broker.download_ways import configured_repository
from railgun.broker.held_ports import held_port, number_of
from railgun.broker.installation import cache_folder
from railgun.exclusive import exclusive
from tests.frontend.serving import until

VERSION = "3.0.9"
_GROUP, _NAME = "io.apicurio", "apicurio-registry-app"
_FILE = f"{_NAME}-{VERSION}-all.tar.gz"
_SHA256 = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
_FETCH_S = 240


@contextmanager
def apicurio(folder: Path) -> Iterator[str]:
    """Its URL; it runs with the block. Where it cannot be fetched the test is skipped."""
    jar = _installed() / f"{_NAME}-{VERSION}-runner.jar"
    with held_port() as held:
        yield from _running(jar, number_of(held), folder)


def _running(jar: Path, port: int, folder: Path) -> Iterator[str]:
    options = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    settings = [f"-Dquarkus.http.host={HOST}", f"-Dquarkus.http.port={port}"]
    command = [str(find_java()), *options, *settings, "-jar", str(jar)]
    url = f"http://{HOST}:{port}/apis/ccompat/v7"
    with (folder / "apicurio.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            until(lambda: _answers(process, url))
            yield url
        finally:
            process.kill()
            process.wait()


def _answers(process: "subprocess.Popen[bytes]", url: str) -> bool:
    assert process.poll() is None
    try:
        return httpx.get(f"{url}/subjects").status_code == 200
    except httpx.TransportError:
        time.sleep(0.2)
        return False


def _installed() -> Path:
    found = cache_folder() / "apicurio" / VERSION
    found.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(found.parent / "install.lock"):
        if not found.is_dir():
            with tempfile.TemporaryDirectory(dir=found.parent, prefix="fetching-") as temporary:
                work = Path(temporary)
                archive = _fetched(work)
                with tarfile.open(archive) as files:
                    files.extractall(work / "made", filter="data")
                (work / "made").rename(found)
    return found


def _fetched(work: Path) -> Path:
    archive = work / _FILE
    try:
        _fetch(archive, work)
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    except (OSError, ValueError, httpx.HTTPError, subprocess.SubprocessError) as error:
        pytest.skip(f"{_FILE} could not be fetched: {error}")
    assert digest == _SHA256
    return archive


def _fetch(archive: Path, work: Path) -> None:
    """By the ways of the broker's jars but one: Ivy takes no archives."""
    repository, maven = configured_repository(Path.home()), shutil.which("mvn")
    if repository is not None:
        path = f"{_GROUP.replace('.', '/')}/{_NAME}/{VERSION}/{_FILE}"
        with (
            httpx.stream("GET", f"{repository}/{path}", timeout=_FETCH_S) as answer,
            archive.open("wb") as file,
        ):
            answer.raise_for_status()
            for piece in answer.iter_bytes():
                file.write(piece)
    elif maven is not None:
        subprocess.run(
            [
                *(maven, "-q", "-B", f"-Dmaven.repo.local={work / 'repository'}", "dependency:copy"),
                f"-Dartifact={_GROUP}:{_NAME}:{VERSION}:tar.gz:all",
                f"-DoutputDirectory={work}",
            ],
            check=True,
            capture_output=True,
            timeout=_FETCH_S,
        )
    else:
        raise OSError("there is neither a configured repository nor Maven")
