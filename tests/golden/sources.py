"""The sources of the program, for tests that look for names in them."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("railgun", "reservoir", "frontend")


def nodes(word: str) -> Iterator[tuple[str, ast.AST]]:
    """(module, node of its syntax tree) of every module whose text has a word."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if word in text:
                module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                for node in ast.walk(ast.parse(text)):
                    yield module, node
