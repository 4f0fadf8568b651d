"""Makes names of fields, streams and metrics, and says which words names are made of."""

import re
import unicodedata
from collections.abc import Collection, Sequence

from railgun.catalog.names import RESERVED_STREAMS
from railgun.language.limits import NAME_LIMIT
from railgun.wire.path import Step, has_digits_of_value

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# Versions, and what topics of this project's own names end with.
_SAYS_NOTHING = re.compile(r"v?[0-9]+|in", re.IGNORECASE | re.ASCII)
_KEY_MAX = 100


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case: `merchantId`, `merchant_id` and `MERCHANT-ID` are two words."""
    return [word.lower() for word in _WORD.findall(name)]


def is_value(key: str) -> bool:
    """Return whether a key of an object seems to be a value of an event, such as the number of an account."""
    return has_digits_of_value(key) or len(key) > _KEY_MAX


def identifier(text: str, otherwise: str) -> str:
    """Return a name for a stream, field or metric that is like a text. otherwise: the name if nothing is left of it."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9_]+", "_", plain).strip("_")
    if not name:
        return otherwise
    return (name if name[0].isalpha() else f"{otherwise}_{name}")[:NAME_LIMIT]


def unused(name: str, used: Collection[str]) -> str:
    """Return a name, with a number behind it if it is used."""
    found, number = name, 2
    while found in used:
        found, number = f"{name[: NAME_LIMIT - 6]}_{number}", number + 1
    return found


def field_name(steps: Sequence[Step], used: Collection[str]) -> str:
    """Return a name for the field at a path, of as few of its last keys as tell it from others. used: other names."""
    parts = [str(step) for step in steps]
    first = len(parts) - 1
    while first > 0 and not isinstance(steps[first], str):
        first -= 1
    name = identifier("_".join(parts[first:]), "field")
    while (name in used or name == "all") and first > 0:
        first -= 1
        name = identifier("_".join(parts[first:]), "field")
    return unused("all_" if name == "all" else name, used)


def stream_name(place: str) -> str:
    """Return a name for the stream of a file or topic: the last part of its name that says something."""
    parts = [part for part in re.split(r"[./\\]", place) if part]
    said = [part for part in parts if not _SAYS_NOTHING.fullmatch(part)]
    name = identifier((said or parts or [""])[-1], "events")
    return f"{name[: NAME_LIMIT - 7]}_events" if name in RESERVED_STREAMS else name
