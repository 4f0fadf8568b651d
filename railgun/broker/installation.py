"""Installs jars in a folder, Kafka's in the cache: fetches and checks them once. The folder is complete or missing.

`LocalBroker` calls it.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

from railgun.broker.artifacts import KAFKA_VERSION, ROOTS, Bundle, locked_jars, unsound
from railgun.broker.download_ways import REPOSITORY_VARIABLE, configured_repository, download_ways
from railgun.broker.errors import FetchError
from railgun.exclusive import exclusive

Say = Callable[[str], None]
_SIZE_MB = 44


def cache_folder() -> Path:
    """Return RAILGUN_CACHE_DIR, or else `railgun` in the user's cache."""
    named = os.environ.get("RAILGUN_CACHE_DIR")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "railgun"


def install(say: Say) -> Path:
    """Return the folder with Kafka's jars, as `install_bundle` does."""
    bundle = Bundle(f"Kafka {KAFKA_VERSION}", _SIZE_MB, ROOTS, locked_jars())
    return install_bundle(bundle, cache_folder() / "kafka" / KAFKA_VERSION, say)


def install_bundle(bundle: Bundle, folder: Path, say: Say) -> Path:
    """Return the folder with the jars. Fetches them if they are missing. Several processes may call this at once.

    say: is told what takes long.
    Raises FetchError if no way gets them.
    """
    with exclusive(folder.parent / "install.lock"):
        if not is_installed(bundle, folder):
            _fetch(bundle, folder, say)
    return folder


def is_installed(bundle: Bundle, folder: Path) -> bool:
    """Whether a folder has the jars.

    The folder gets its name only when it is complete. If somebody deleted single files, their number tells.
    """
    return folder.is_dir() and len(list(folder.glob("*.jar"))) == len(bundle.jars)


def _fetch(bundle: Bundle, folder: Path, say: Say) -> None:
    failures: list[str] = []
    jars = bundle.jars
    for name, bring in download_ways(bundle, configured_repository(Path.home())):
        say(f"fetching {bundle.name} ({len(jars)} jars, {bundle.size_mb} MB) into {folder}: {name}, once")
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
            _keep_only(out, {jar.name for jar in jars})
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(out, folder)
            return
    raise FetchError(
        str(folder),
        f"{bundle.name} could not be fetched: {' / '.join(failures)}",
        "check the network; another Maven repository can be named in ~/.m2/settings.xml (a mirror) or "
        f"{REPOSITORY_VARIABLE}",
    )


def _keep_only(folder: Path, names: Collection[str]) -> None:
    """Delete other files that a tool has brought, so that they do not get onto the class path."""
    for path in folder.iterdir():
        if path.name not in names:
            path.unlink()
