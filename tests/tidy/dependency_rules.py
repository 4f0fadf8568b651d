"""Rules for dependencies: pinned, explained, and from nobody's private place."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.tree import Tree

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+) \\$", re.MULTILINE)
_PROJECT = Path("pyproject.toml")
_PAGE = Path("docs/dependencies.md")
# The extras whose packages each lock has: those of the image, of the demo, and of `make setup`.
_LOCKS = {
    "requirements.lock": ("engine",),
    "requirements-demo.lock": ("engine", "demo"),
    "requirements-dev.lock": ("engine", "demo", "dev", "bench", "spark"),
}
_EXTRAS = _LOCKS["requirements-dev.lock"]
_INSTALLED_BY_NAME = re.compile(r"pip3? install [^\n`]*?(?<![\w./-])railgun(?:-engine)?(?![\w./-])")


def pins(tree: Tree) -> Iterator[str]:
    """Each lock pins what the project asks for, in a version that it asks for."""
    for lock, extras in _LOCKS.items():
        pinned = {canonicalize_name(name): version for name, version in _PIN.findall(_text(tree, Path(lock)))}
        for requirement in _requirements(tree, extras):
            version = pinned.get(canonicalize_name(requirement.name))
            if version is None or version not in requirement.specifier:
                yield f"{lock}: {requirement} is not met (pinned: {version}); `make lock` pins anew"


def locks_are_portable(tree: Tree) -> Iterator[str]:
    """A lock names no package index and no folder: they belong to whoever installs."""
    for lock in _LOCKS:
        for number, line in enumerate(_text(tree, Path(lock)).splitlines(), 1):
            if re.match(r"\s*--(?!hash=)", line) or "://" in line or " @ " in line:
                yield f"{lock}:{number}: {line.strip()}"


def reasons(tree: Tree) -> Iterator[str]:
    """Every dependency has its line in the page of reasons, and the page names no other."""
    named = set(re.findall(r"^\| `([A-Za-z0-9._-]+)`", _text(tree, _PAGE), re.MULTILINE))
    asked = {requirement.name for requirement in _requirements(tree, _EXTRAS)} | _build_backend(tree)
    for name in sorted(asked - named):
        yield f"{_PAGE}: no line for {name}"
    for name in sorted(named - asked):
        yield f"{_PAGE}: {name} is no dependency"


def installed_by_path(tree: Tree) -> Iterator[str]:
    """No hint installs Railgun by a name: on the package index `railgun` is another project's."""
    for path in tree.texts():
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            if found := _INSTALLED_BY_NAME.search(line):
                yield f"{path}:{number}: {found[0]}; name the folder"


def _requirements(tree: Tree, extras: tuple[str, ...]) -> list[Requirement]:
    """What the project asks for, but for the extras of its own that an extra includes."""
    project = tomllib.loads(_text(tree, _PROJECT)).get("project", {})
    lines = list(project.get("dependencies", []))
    for extra in extras:
        lines += project.get("optional-dependencies", {}).get(extra, [])
    asked = [Requirement(line) for line in lines]
    return [each for each in asked if each.name != project.get("name")]


def _build_backend(tree: Tree) -> set[str]:
    build = tomllib.loads(_text(tree, _PROJECT)).get("build-system", {})
    return {Requirement(line).name for line in build.get("requires", [])}


def _text(tree: Tree, path: Path) -> str:
    return tree.read(path) if path in tree.files else ""
