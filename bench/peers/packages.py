"""The packages of peers, which `make bench-peers` puts into a folder of their own."""

import re
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
FOLDER = _HERE.parent.parent / ".cache" / "peers" / "packages"
_PINNED = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def make_importable() -> None:
    """Have the packages of peers come before those of this environment."""
    sys.path.insert(0, str(FOLDER))


def pinned(package: str) -> str:
    """Return the version of a package that the lock names."""
    lock = (_HERE / "requirements.lock").read_text(encoding="utf-8")
    versions: dict[str, str] = dict(_PINNED.findall(lock))
    return versions[package]


def lacking(package: str) -> str | None:
    """Return why a package cannot be used, or None."""
    name, version = package.replace("-", "_"), pinned(package)
    if (FOLDER / f"{name}-{version}.dist-info").is_dir():
        return None
    return f"{package} {version} is not installed: make peers-setup"
