"""Runs as if only the base distribution were installed.

`python -m tests.client.base_alone WORDS` is `railgun WORDS`; `-c TEXT` in their place runs a program.
"""

import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from types import ModuleType

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
OWN = frozenset({"railgun", "reservoir", "frontend"})


def asked_for(extra: str | None = None) -> list[Requirement]:
    """What the project asks for: of the base, or of an extra."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    lines = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


def base_packages() -> set[str]:
    """The distributions that come with the base, by canonical names: what it asks for, and what those ask for."""
    found: set[str] = set()
    left = [canonicalize_name(each.name) for each in asked_for()]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [canonicalize_name(each.name) for each in _needed_by(name)]
    return found


def _needed_by(name: str) -> Iterator[Requirement]:
    for line in requires(name) or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement


class _Missing(MetaPathFinder):
    """Finds no module but those of the base, this project, and Python itself."""

    def __init__(self) -> None:
        base = base_packages()
        self._allowed = OWN | {
            module
            for module, names in packages_distributions().items()
            if base.intersection(map(canonicalize_name, names))
        }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top = fullname.partition(".")[0]
        if top in self._allowed or top in sys.stdlib_module_names:
            return None
        raise ModuleNotFoundError(f"No module named {top!r}", name=fullname)


def _main() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in {"packaging", "tests"}]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Missing())
    if sys.argv[1:2] == ["-c"]:
        exec(compile(sys.argv[2], "program", "exec"), {"__name__": "__main__"})
        return
    from railgun.cli.main import main

    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    _main()
