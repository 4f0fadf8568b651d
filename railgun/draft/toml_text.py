"""Writes text as TOML has it, whatever is in it."""

import json
from collections.abc import Iterable, Mapping

_DELETE = "\x7f"


def quoted(text: str) -> str:
    """Return a text as a basic string."""
    return json.dumps(text, ensure_ascii=False).replace(_DELETE, "\\u007f")


def words_in_comment(text: str) -> str:
    """Return a text on one line, without characters that a comment must not have."""
    return "".join(each if each.isprintable() else "\ufffd" for each in " ".join(text.split()))


def strings(texts: Iterable[str]) -> str:
    """Return an array of strings."""
    return f"[{', '.join(map(quoted, texts))}]"


def inline_table(values: Mapping[str, str]) -> str:
    """Return an inline table of strings, whose keys are plain."""
    return "{ " + ", ".join(f"{key} = {quoted(value)}" for key, value in values.items()) + " }"
