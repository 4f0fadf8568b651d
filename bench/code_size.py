"""How much code there is to read: modules, and lines of code and imports, by package: `python -m bench.code_size`.

A line counts where it holds a part of a statement. Comments, blank lines and docstrings do not count.
"""

import tokenize
from collections import Counter
from io import StringIO

from bench.children import TREE

_PACKAGES = ("railgun", "reservoir", "frontend")

_NO_CODE = frozenset(
    {
        *(tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT),
        *(tokenize.ENCODING, tokenize.ENDMARKER),
    }
)


def code_lines(source: str) -> int:
    """Return the number of lines with code in a module. A statement that is only a string counts as a docstring."""
    found: set[int] = set()
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.NEWLINE:
            if any(each.type != tokenize.STRING for each in statement):
                found.update(row for each in statement for row in range(each.start[0], each.end[0] + 1))
            statement = []
        elif token.type not in _NO_CODE:
            statement.append(token)
    return len(found)


def main() -> None:
    """Print the size of each package, and of all."""
    total = Counter[str]()
    for package in _PACKAGES:
        sources = [path.read_text(encoding="utf-8") for path in (TREE / package).rglob("*.py")]
        size = Counter(modules=len(sources), lines=sum(map(code_lines, sources)))
        print(f"{package:10} {size['modules']:>4} modules {size['lines']:>7,} lines")
        total += size
    print(f"{'all':10} {total['modules']:>4} modules {total['lines']:>7,} lines of code and imports")


if __name__ == "__main__":
    main()
