"""Finds the sources on which compiled kernels depend: the files with kernels, and all that these files import.

They are found by their content, so that no list of files with kernels is needed.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGES = ("frontend", "railgun", "reservoir")
"""The packages of the distribution, which are folders beside one another."""

_ROOT = Path(__file__).resolve().parents[2]
_TOOLCHAIN = b"reservoir.native"  # every file with kernels imports it, and few others do
_MAKES_IMAGES = b"from reservoir.native.image_build import"
# An import at the start of a line. Kernels cannot call anything that a function imports inside.
_IMPORT = re.compile(rf"\nfrom ((?:{'|'.join(PACKAGES)})[\w.]*) import (\([^)]*\)|[^\n]*)".encode())
_NAME = re.compile(rb"\w+")


@cache
def sources() -> dict[Path, bytes]:
    """Return sources with their content: files with kernels, the other files of their rooms, and the files that make
    an image.
    """
    found = {str(path) for path in kernel_sources()}
    for room in _rooms().values():
        if any(_holds_kernels(room[path]) for path in found & room.keys()):
            found.update(room)
        else:
            found.update(path for path, text in room.items() if _MAKES_IMAGES in text)
    return {Path(path): text for room in _rooms().values() for path, text in room.items() if path in found}


def digest(paths: Iterable[Path]) -> str:
    """Return a digest of the content of sources: 16 hexadecimal digits."""
    return hashlib.sha256(b"".join(sources()[path] for path in paths)).hexdigest()[:16]


@cache
def kernel_sources() -> list[Path]:
    """Return the files with kernels and whatever they import, directly or not, because constants are compiled in."""
    texts = {path: text for room in _rooms().values() for path, text in room.items()}
    modules = {_module(path): path for path in texts}
    found = {path for path, text in texts.items() if _holds_kernels(text)}
    waiting = list(found)
    while waiting:
        imported = {modules[name] for name in _imported(texts[waiting.pop()]) & modules.keys()} - found
        found |= imported
        waiting += imported
    return sorted(map(Path, found))


@cache
def _rooms() -> dict[str, dict[str, bytes]]:
    """Return the content of each file by room. A folder directly in a package is a room, with all below it; the files
    directly in a package are one more.
    """
    found = {}
    for package in PACKAGES:
        with os.scandir(_ROOT / package) as entries:
            within = sorted(entries, key=lambda each: each.name)
        found[package] = {each.path: _content(each.path) for each in within if each.name.endswith(".py")}
        for folder in (each.path for each in within if each.is_dir()):
            found[folder] = {path: _content(path) for path in _files(folder)}
    return found


def _files(folder: str) -> Iterator[str]:
    names = ((place, name) for place, _, names in os.walk(folder) for name in names)
    return iter(sorted(f"{place}/{name}" for place, name in names if name.endswith(".py")))


def _content(path: str) -> bytes:
    # The file is read in one call, because a starting process reads some hundred files here.
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, os.fstat(file).st_size)
    finally:
        os.close(file)


def _holds_kernels(text: bytes) -> bool:
    return _TOOLCHAIN in text and (b"@jit" in text or b"jit(" in text)


def _module(path: str) -> str:
    return path[len(str(_ROOT)) + 1 : -len(".py")].replace("/", ".").removesuffix(".__init__")


def _imported(text: bytes) -> set[str]:
    """The modules that a source imports, and whatever else it imports from them."""
    names: set[str] = set()
    for module, items in _IMPORT.findall(text):
        names.add(module.decode())
        names.update(f"{module.decode()}.{name.decode()}" for name in _NAME.findall(items))
    return names
