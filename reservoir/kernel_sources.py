"""Which sources compiled kernels depend on: the files that hold kernels, and all that these import."""

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_ROOMS = (
    "reservoir",
    "railgun/aggregators",
    "railgun/engine",
    "railgun/interpreter",
    "railgun/language",
    "railgun/messaging",
    "railgun/plan",
    "railgun/state",
    "railgun/task",
    "railgun/wire",
)
_ROOT = Path(__file__).resolve().parent.parent
_KERNEL = re.compile(rb"\bjit\(|^@jit\b", re.MULTILINE)
# At the start of a line: what a function imports for itself, no kernel can call.
_IMPORT = re.compile(rb"^from ((?:railgun|reservoir)[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)


@cache
def sources() -> dict[Path, bytes]:
    """Every file of the rooms with kernels, and its content."""
    return {path: path.read_bytes() for room in _ROOMS for path in sorted((_ROOT / room).rglob("*.py"))}


def digest(paths: Iterable[Path]) -> str:
    """Of the content of sources: 16 hexadecimal digits."""
    return hashlib.sha256(b"".join(sources()[path] for path in paths)).hexdigest()[:16]


def kernel_sources() -> list[Path]:
    """The files with kernels and, as constants are compiled in, whatever they import, directly or not."""
    found = {path for path, text in sources().items() if _KERNEL.search(text)}
    waiting = list(found)
    while waiting:
        imported = _imported(sources()[waiting.pop()]) - found
        found |= imported
        waiting += imported
    return sorted(found)


def _imported(text: bytes) -> set[Path]:
    """The files of the rooms that a source imports: modules, and packages where names come from those."""
    names: set[str] = set()
    for module, items in _IMPORT.findall(text):
        names.add(module.decode())
        names |= {f"{module.decode()}.{name}" for name in re.findall(r"\w+", items.decode())}
    places = {_ROOT / name.replace(".", "/") for name in names}
    return {path for place in places for path in (place.with_suffix(".py"), place / "__init__.py")} & set(
        sources()
    )
