"""Three ways to download jars: from a configured repository, by Maven, or from the public one."""

import base64
import http.client
import os
import shutil
import subprocess
import urllib.error
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from railgun.broker.artifacts import Bundle, Jar
from railgun.broker.errors import FetchError
from railgun.urls import address_of, shown_url, with_shown_urls

REPOSITORY_VARIABLE = "RAILGUN_MAVEN_REPOSITORY"
PUBLIC_REPOSITORY = "https://repo.maven.apache.org/maven2"
# The values of `mirrorOf` with which a mirror stands for the public repository. Maven calls that `central`.
_STANDS_FOR_CENTRAL = {"*", "central", "external:*"}


def configured_repository(home: Path) -> str | None:
    """Return the repository that RAILGUN_MAVEN_REPOSITORY names, or else the mirror in `~/.m2/settings.xml`, or None.

    Raises FetchError if these settings cannot be read.
    """
    named = os.environ.get(REPOSITORY_VARIABLE)
    if named:
        return named.rstrip("/")
    settings = home / ".m2" / "settings.xml"
    if not settings.is_file():
        return None
    try:
        root = ET.parse(settings).getroot()
    except (ET.ParseError, OSError) as error:
        raise FetchError(str(settings), f"it cannot be read ({error})", "mend it, or move it away") from error
    for mirror in root.iterfind("{*}mirrors/{*}mirror"):
        url, stands_for = mirror.findtext("{*}url", "").strip(), mirror.findtext("{*}mirrorOf", "")
        words = {word.strip() for word in stands_for.split(",")}
        if url and words & _STANDS_FOR_CENTRAL and "!central" not in words:
            return url.rstrip("/")
    return None


# (name of the way, function that puts jars into a folder). The function gets another folder to work in; raises OSError.
Way = tuple[str, Callable[[Path, Path], None]]

_REQUEST_S = 60
_TOOL_S = 600
_CONNECTIONS = 8

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>railgun</groupId><artifactId>broker</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>
"""
_POM_DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)


def download_ways(bundle: Bundle, repository: str | None) -> list[Way]:
    """Return the ways that this machine has, in the order in which they are tried.

    A configured repository comes first, and stands for the public one. Maven knows the public one and its own
    configuration.
    """
    found: list[Way] = []
    if repository is not None:
        found.append(_from(repository, bundle.jars))
    maven = shutil.which("mvn")
    if maven is not None:
        found.append(("Maven", lambda out, work: _maven(maven, bundle, out, work)))
    if repository is None:
        found.append(_from(PUBLIC_REPOSITORY, bundle.jars))
    return found


def _from(repository: str, jars: Sequence[Jar]) -> Way:
    return f"download from {shown_url(repository)}", lambda out, work: _download(repository, jars, out)


def _request(repository: str, jar: Jar) -> urllib.request.Request:
    """Return the request for a jar. Raises ValueError."""
    url, credentials = address_of(repository)
    request = urllib.request.Request(f"{url}/{jar.path}")
    if credentials is not None:
        encoded = base64.b64encode(":".join(credentials).encode()).decode("ascii")
        # A repository may redirect its clients. The password does not go to the other address.
        request.add_unredirected_header("Authorization", f"Basic {encoded}")
    return request


def _download(repository: str, jars: Sequence[Jar], out: Path) -> None:
    def fetch(jar: Jar) -> None:
        try:
            with (
                urllib.request.urlopen(_request(repository, jar), timeout=_REQUEST_S) as answer,
                (out / jar.name).open("wb") as file,
            ):
                shutil.copyfileobj(answer, file)
        except urllib.error.HTTPError as error:
            error.close()
            raise OSError(f"{jar.path}: {error.code} {error.reason}") from error
        except (ValueError, http.client.HTTPException) as error:
            raise OSError(str(error) or type(error).__name__) from error

    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        for done in [pool.submit(fetch, jar) for jar in jars]:
            done.result()


def _maven(maven: str, bundle: Bundle, out: Path, work: Path) -> None:
    pom = work / "pom.xml"
    dependencies = "".join(_POM_DEPENDENCY.format(*root) for root in bundle.roots)
    pom.write_text(_POM.format(dependencies=dependencies), encoding="ascii")
    _run(
        [
            *(maven, "-q", "-B", f"-Dmaven.repo.local={work / 'repository'}", "-f", str(pom)),
            *("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={out}"),
        ]
    )


def _run(command: list[str]) -> None:
    """Run a tool. If it fails, the error has its last words."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_TOOL_S)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"it did not finish within {_TOOL_S} s") from error
    if ran.returncode:
        lines = [line.strip() for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
        reason = next((line for line in lines if "ERROR" in line), lines[-1] if lines else "no message")
        # Maven names the mirrors of its settings, whose URLs may have passwords.
        raise OSError(with_shown_urls(reason)[:300])
