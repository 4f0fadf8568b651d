"""Makes the errors for queries that the grammar does not accept.

An error says where the text is wrong, what could stand there, and what may be meant. `railgun.language.parser` calls
this.
"""

import re

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from railgun.language.errors import QueryError, nearest, position_of

# The tokens with which an operand may begin. If all of them are accepted, an error says "a value" instead.
_OPERAND = frozenset({"NAME", "QUOTED", "INTEGER", "DECIMAL", "DOUBLE", "STRING", "TRUE", "FALSE", "NULL"})
_OPERAND_START = _OPERAND | {"_OPEN", "MINUS", "CASE", "NOT"}
# Tokens in the words of an error. Those that are not listed are keywords, which an error shows as they are.
_SAID = {
    "NAME": "a name",
    "QUOTED": "a name",
    "INTEGER": "a whole number",
    "STRING": "a string in single quotes",
    "UNIT": "a unit of time (SECONDS, MINUTES, HOURS, DAYS ...)",
    "COMPARISON": "a comparison",
    "STAR": "'*'",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "SLASH": "'/'",
    "PERCENT": "'%'",
    "CONCAT": "'||'",
    "_OPEN": "'('",
    "_CLOSE": "')'",
    "_COMMA": "','",
    "$END": "the end",
}
_UNITS = ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# A comma before FROM: the parser takes FROM as the name of the next item.
_COMMA_FROM = re.compile(r",\s*from\s*\Z", re.IGNORECASE)
# The beginning of a comment of SQL, up to the end of the text.
_COMMENT = re.compile(r"(?:\A|\s)--\s[^\n]*\Z")
_SELECT = re.compile(r"\s*select\b", re.IGNORECASE)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_CURRENT = re.compile(r"\bcurrent\s+\Z", re.IGNORECASE)
_SHORT_UNITS = {
    "ms": "MILLISECONDS",
    **dict.fromkeys(("s", "sec", "secs"), "SECONDS"),
    **dict.fromkeys(("m", "min", "mins"), "MINUTES"),
    **dict.fromkeys(("h", "hr", "hrs"), "HOURS"),
    "d": "DAYS",
    **dict.fromkeys(("w", "wk", "wks"), "WEEKS"),
}
# Units of time whose length differs from one to the next.
_OF_NO_LENGTH = ("month", "quarter", "year")
# The remedy for each word of SQL that the language lacks, or has in another place.
_OF_SQL = {
    "WINDOW": "a window follows the word OVER",
    "HAVING": "every event is answered: compare the metric in a DERIVE, as in DERIVE n > 3 AS is_many FROM payments",
    **dict.fromkeys(
        ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS"),
        "a metric reads one stream: put what it needs of another into the event's own fields",
    ),
    "ORDER": "leave it out: every event has one answer",
    "LIMIT": "leave it out: every event has one answer",
}
# Tokens that are accepted behind the second operand of a comparison.
_BEHIND_COMPARED = {"PLUS", "_OR"}
_ARITHMETIC = {"PLUS", "MINUS", "SLASH", "PERCENT", "STAR", "CONCAT"}
# The tokens that may follow an item of a DERIVE that lacks its AS. A name is among them, for an item that lacks only
# the word AS.
_BEHIND_NAME = frozenset({"_COMMA", "_FROM", "_SEMICOLON", "$END", "NAME", "QUOTED"})
_NAME_REMEDY = "write AS and a name behind the expression, as in DERIVE declined / n AS rate FROM payments"
# The remedies for characters that other languages use.
_CHARACTERS = {
    "!": "unequal is <> or !=",
    "&": "both is AND",
    "|": "either is OR; || joins strings",
    "`": "a name goes in double quotes",
    "[": "a list goes in parentheses",
}
_CHARACTER_REMEDY = "text goes in single quotes, a name that needs quotes in double ones"


def unexpected_token(text: str, error: UnexpectedToken) -> QueryError:
    """Return the error for a word or sign in the wrong place, or for text that ends too early."""
    token = error.token
    accepted = set(error.accepts) if isinstance(error.accepts, set) else set(error.expected)
    is_end = token.type == "$END"
    position = position_of(text, len(text) if is_end else token.start_pos or 0)
    meant = None if is_end else _meant(token, accepted, text)
    if meant is None and token.type in _BEHIND_NAME and _wants_name(accepted):
        return QueryError("each item of DERIVE needs a name", position, hint=_NAME_REMEDY)
    if is_end:
        return QueryError("the query ends too early", position, _expected(accepted))
    return QueryError(f"unexpected {str(token)[:80]!r}", position, _expected(accepted), meant)


def unexpected_character(text: str, error: UnexpectedCharacters) -> QueryError:
    """Return the error for a character with which no token begins."""
    offset = error.pos_in_stream or 0
    character = text[offset]
    if character in "'\"":
        closing = "a string in single quotes" if character == "'" else "a name in double quotes"
        return QueryError(
            f"{closing} is never closed", position_of(text, offset), hint=f"end it with {character}"
        )
    remedy = _CHARACTERS.get(character, _CHARACTER_REMEDY)
    return QueryError(f"unexpected character {character!r}", position_of(text, offset), hint=remedy)


def _wants_name(accepted: set[str]) -> bool:
    """Whether the expression of an item of a DERIVE may end here."""
    # AS is also accepted in a CAST and behind an item of a SELECT. One of these three tokens is then accepted too.
    return "_AS" in accepted and accepted.isdisjoint({"_CLOSE", "_COMMA", "_FROM"})


def _keywords(accepted: set[str]) -> list[str]:
    """Return the keywords among the accepted tokens."""
    words = [name.lstrip("_") for name in accepted if name not in _SAID and name not in _OPERAND_START]
    return words + [name for name in ("NOT", "CASE") if name in accepted]


def _expected(accepted: set[str]) -> tuple[str, ...]:
    """Return in words what could stand there. Operators of arithmetic are left out if anything else could."""
    if accepted >= _OPERAND:
        return tuple(sorted({"a value", *_worded(accepted - _OPERAND_START)}))
    rest = accepted - _ARITHMETIC
    return tuple(sorted(_worded(rest or accepted)))


def _worded(accepted: set[str]) -> set[str]:
    """Return tokens in the words of an error."""
    return {_SAID.get(name, name.lstrip("_")) for name in accepted if name != "_SEMICOLON"}


def _meant(token: Token, accepted: set[str], text: str) -> str | None:
    """Return a hint at what may be meant by a token that is in the wrong place; None if there is none."""
    found, start = str(token), token.start_pos or 0
    before = text[:start]
    if _COMMA_FROM.search(before):
        return "leave out the comma before FROM"
    if text.startswith("--", start) or _COMMENT.search(_QUOTED.sub("x", before)):
        return "a query has no comments: leave out the text after --"
    if token.type == "STAR" and accepted == {"NAME"}:
        return "name each metric, as in SELECT count(*) AS n, sum(amount) AS total"
    if token.type in _ARITHMETIC | {"COMPARISON"} and "_FROM" in accepted and _SELECT.match(text):
        return "name the metrics, and compute with them in a DERIVE, as in DERIVE total / n AS mean FROM payments"
    if token.type == "COMPARISON" and accepted >= _OPERAND:
        return "equality is a single =" if found == "=" else None
    if token.type == "COMPARISON" and accepted >= _BEHIND_COMPARED:
        return "compare two at a time, as in 1 < x AND x < 3, or write x BETWEEN 1 AND 3"
    return _meant_in_window(token, accepted) or _meant_by_word(found, accepted, before)


def _meant_in_window(token: Token, accepted: set[str]) -> str | None:
    """Return a hint for a token in the place of a window, its size or the size's unit; None if there is none."""
    found = str(token).lower()
    if accepted == {"INTEGER"}:
        if token.type == "STRING":
            return "write a size without quotes, as in 7 DAYS"
        return "write a number and a unit alone, as in 7 DAYS" if found == "interval" else None
    if "UNIT" in accepted:
        if token.type == "DECIMAL":
            return "sizes are whole numbers, as in 90 MINUTES for 1.5 hours"
        if found.startswith(_OF_NO_LENGTH):
            return "months, quarters and years are not all of one length: write days, as in 30 DAYS"
        return f"did you mean {_SHORT_UNITS[found]}?" if found in _SHORT_UNITS else None
    if accepted >= {"SLIDING", "TUMBLING", "INFINITE"}:
        near = nearest(found, ("SLIDING", "TUMBLING", "INFINITE"))
        return (
            f"did you mean {near}?" if near else "write OVER SLIDING 7 DAYS, or OVER INFINITE for all events"
        )
    return None


def _meant_by_word(found: str, accepted: set[str], before: str) -> str | None:
    """Return a hint for a word: a mistyped keyword, or one of SQL. None if there is none."""
    if not _WORD.fullmatch(found):
        return None
    if found.upper() == "ROW" and _CURRENT.search(before):
        return "write EXCLUDE CURRENT"
    if found.upper() == "OVER" and {"_FILTER", "_FROM"} <= accepted:
        return "write one window, last, as in SELECT sum(x) AS total FROM payments GROUP BY card OVER SLIDING 7 DAYS"
    if found.upper() == "IN" and "_DELAYED" in accepted:
        return "windows have no zone: HOUR(t IN 'Europe/Lisbon') and other parts of a time have one"
    # If the word AS may stand here, any word may be meant as a name.
    if "_AS" not in accepted and (remedy := _of_sql(found.upper(), accepted)) is not None:
        return remedy
    near = nearest(found, _UNITS if "UNIT" in accepted else _keywords(accepted))
    return f"did you mean {near}?" if near else None


def _of_sql(word: str, accepted: set[str]) -> str | None:
    """Return the remedy for a word that SQL has in this place; None if there is none."""
    is_behind_window = not accepted.isdisjoint({"_DELAYED", "_EXCLUDE"})
    if word == "GROUP" and is_behind_window:
        return "GROUP BY stands before OVER"
    if word == "WHERE" and "_AND" not in accepted and (is_behind_window or "_OVER" in accepted):
        return "WHERE stands right after the stream's name"
    return _OF_SQL.get(word)
