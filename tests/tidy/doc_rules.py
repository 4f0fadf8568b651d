"""Rules for the docs: what they name exists, and decisions have their three parts."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.tree import Tree

_FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?: {4}.*(?:\n|\Z)|[ \t]*\n(?= {4}))+")
_CODE_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
_TARGET = re.compile(r"^([a-z][a-z0-9-]*):(?!=)", re.MULTILINE)
_MAKE = re.compile(r"(?:^|[\n;&|$(])[ \t]*make((?:[ \t]+[\w=./-]+)+)")
_RAILGUN = re.compile(r"(?:^|[\n;&|$(])[ \t]*(?:python3? -m )?railgun[ \t]+([a-z]+)\b")

DECISION_PARTS = ("Context", "Decision", "Consequences")


def links(tree: Tree) -> Iterator[str]:
    """A relative link leads to a file of this tree, and its anchor to a heading there."""
    for path in tree.docs():
        for target in _LINK.findall(_without_code(tree.read(path))):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            linked = (tree.root / path.parent / name) if name else tree.root / path
            if not linked.exists():
                yield f"{path}: link to {target}, which does not exist"
            elif (
                anchor
                and linked.suffix == ".md"
                and anchor not in anchors(linked.read_text(encoding="utf-8"))
            ):
                yield f"{path}: link to {target}, but no heading there has this anchor"


def make_commands(tree: Tree) -> Iterator[str]:
    """A `make` command that a doc names is a target of the Makefile."""
    makefile = Path("Makefile")
    targets = set(_TARGET.findall(tree.read(makefile))) if makefile in tree.files else set()
    for path in tree.docs():
        for code in _code(tree.read(path)):
            for words in _MAKE.findall(code):
                for word in words.split():
                    if re.fullmatch(r"[a-z][a-z0-9-]*", word) and word not in targets:
                        yield f"{path}: `make {word}`, which the Makefile lacks"


def railgun_commands(tree: Tree) -> Iterator[str]:
    """A `railgun` command that a doc names is one: it can say what it does."""
    if Path("railgun/cli/main.py") not in tree.files:
        return
    known: dict[str, bool] = {}
    for path in tree.docs():
        for code in _code(tree.read(path)):
            for word in _RAILGUN.findall(code):
                if word not in known:
                    known[word] = _has_command(tree.root, word)
                if not known[word]:
                    yield f"{path}: `railgun {word}`, which is no command"


def decisions(tree: Tree) -> Iterator[str]:
    """Decisions are numbered without a gap or a double, and each has its three parts."""
    folder = Path("docs/decisions")
    pages = [
        path
        for path in tree.docs()
        if path.parent == folder and path.name not in ("README.md", "template.md")
    ]
    for number, path in enumerate(pages, 1):
        if not re.fullmatch(rf"{number:04d}-[a-z0-9-]+\.md", path.name):
            yield f"{path}: the page in this place is named {number:04d}-its-title.md"
        headings = _HEADING.findall(tree.read(path))
        for part in DECISION_PARTS:
            if part not in headings:
                yield f"{path}: no heading {part!r}"


def anchors(text: str) -> set[str]:
    """The anchors that code hosts give the headings of a page."""
    headings = _HEADING.findall(_FENCE.sub("\n", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _has_command(root: Path, word: str) -> bool:
    command = [sys.executable, "-m", "railgun", word, "--help"]
    return subprocess.run(command, cwd=root, capture_output=True, timeout=60).returncode == 0


def _code(text: str) -> list[str]:
    """The code blocks (fenced and indented) and code spans of a page."""
    blocks = [found[0] for found in _FENCE.finditer(text)]
    rest = _FENCE.sub("\n", text)
    blocks += [found[0] for found in _INDENTED.finditer(rest)]
    return blocks + _CODE_SPAN.findall(_INDENTED.sub("\n", rest))


def _without_code(text: str) -> str:
    return _CODE_SPAN.sub("", _INDENTED.sub("\n", _FENCE.sub("\n", text)))
