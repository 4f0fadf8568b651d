"""Which sources compiled kernels depend on: the files that hold kernels, and all that these import."""

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_ROOMS = (
    "reservoir",
    "railgun/aggregators",
    "railgun/ingest",
    "railgun/interpreter",
    "railgun/language",
    "railgun/messaging",
    "railgun/plan",
    "railgun/state",
    "railgun/task",
    "railgun/wire",
)
_ROOT = Path(__file__).resolve().parents[2]
_CALLED = "railgun/kernels.py"  # decides what is compiled before it is called
# At the start of a line: what a function imports for itself, no kernel can call.
_IMPORT = re.compile(r"^from ((?:railgun|reservoir)[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_NAME = re.compile(r"\w+")


@cache
def sources() -> dict[Path, bytes]:
    """Every file of the rooms with kernels, and the list of what is called; with their content."""
    found = [path for room in _ROOMS for path in sorted((_ROOT / room).rglob("*.py"))]
    return {path: path.read_bytes() for path in (*found, _ROOT / _CALLED)}


def digest(paths: Iterable[Path]) -> str:
    """Of the content of sources: 16 hexadecimal digits."""
    return hashlib.sha256(b"".join(sources()[path] for path in paths)).hexdigest()[:16]


def kernel_sources() -> list[Path]:
    """The files with kernels and, as constants are compiled in, whatever they import, directly or not."""
    modules = {_module(path): path for path in sources()}
    found = {path for path, text in sources().items() if b"@jit" in text or b"jit(" in text}
    waiting = list(found)
    while waiting:
        imported = {modules[name] for name in _imported(sources()[waiting.pop()]) & modules.keys()} - found
        found |= imported
        waiting += imported
    return sorted(found)


def _module(path: Path) -> str:
    return str(path)[len(str(_ROOT)) + 1 : -len(".py")].replace("/", ".").removesuffix(".__init__")


def _imported(text: bytes) -> set[str]:
    """The modules that a source imports, and whatever else it imports from them."""
    names: set[str] = set()
    for module, items in _IMPORT.findall(text.decode()):
        names.add(module)
        names.update(f"{module}.{name}" for name in _NAME.findall(items))
    return names
