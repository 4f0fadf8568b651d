"""Installs Kafka's jars in the cache: fetches and checks them once. The folder is complete or missing.

`LocalBroker` calls it.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from railgun.broker.artifacts import KAFKA_VERSION, Jar, locked_jars, unsound
from railgun.broker.download_ways import REPOSITORY_VARIABLE, Way, configured_repository, download_ways
from railgun.broker.errors import FetchError
from railgun.exclusive import exclusive

Say = Callable[[str], None]


def cache_folder() -> Path:
    """Return RAILGUN_CACHE_DIR, or else `railgun` in the user's cache."""
    named = os.environ.get("RAILGUN_CACHE_DIR")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "railgun"


def install(say: Say) -> Path:
    """Return the folder with the jars. Fetches them if they are missing. Several processes may call this at once.

    say: is told what takes long.
    Raises FetchError if no way gets them.
    """
    jars = locked_jars()
    folder = cache_folder() / "kafka" / KAFKA_VERSION
    with exclusive(folder.parent / "install.lock"):
        # The folder gets this name only when it is complete. If somebody deleted single files, their number tells.
        if folder.is_dir() and len(list(folder.glob("*.jar"))) == len(jars):
            return folder
        found = download_ways(jars, configured_repository(Path.home()))
        _fetch(found, jars, folder, say)
    return folder


def _fetch(found: Sequence[Way], jars: Sequence[Jar], folder: Path, say: Say) -> None:
    failures: list[str] = []
    for name, bring in found:
        say(f"fetching Kafka {KAFKA_VERSION} ({len(jars)} jars, 44 MB) into {folder}: {name}, once")
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetching-") as temporary:
            out, work = Path(temporary) / "jars", Path(temporary) / "work"
            out.mkdir()
            work.mkdir()
            try:
                bring(out, work)
            except OSError as error:
                failures.append(f"{name}: {error}")
                continue
            wrong = unsound(out, jars)
            if wrong:
                failures.append(f"{name}: {len(wrong)} jars are missing or not what is pinned ({wrong[0]})")
                continue
            _keep_only(out, jars)
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(out, folder)
            return
    raise FetchError(
        str(folder),
        f"Kafka {KAFKA_VERSION} could not be fetched: {' / '.join(failures)}",
        "check the network; another Maven repository can be named in ~/.m2/settings.xml (a mirror) or "
        f"{REPOSITORY_VARIABLE}",
    )


def _keep_only(folder: Path, jars: Sequence[Jar]) -> None:
    """Delete other files that a tool has brought, so that they do not get onto the class path."""
    names = {jar.name for jar in jars}
    for path in folder.iterdir():
        if path.name not in names:
            path.unlink()
