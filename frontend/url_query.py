"""Reads the query of a URL: its pairs of names and texts, and the parameters that several routes take."""

import urllib.parse

from frontend.problems import ProblemError, refusal

TIMEOUT_MS_MAX = 3_600_000


def pairs_of(query: bytes, fields_max: int = 16) -> list[tuple[str, str]]:
    """Return the decoded pairs of a query, in order. Raises ProblemError (422) if they are bad or too many."""
    try:
        return urllib.parse.parse_qsl(
            query.decode("ascii"), keep_blank_values=True, max_num_fields=fields_max, errors="strict"
        )
    except ValueError:
        raise refusal(422, "the query of the URL cannot be read", [(("query",), "not readable")]) from None


def metrics_of(value: str) -> tuple[str, ...]:
    """Return the names in a text, which are separated by commas. A name that occurs twice is returned once."""
    return tuple(dict.fromkeys(word.strip() for word in value.split(",")))


def timeout_of(value: str) -> int:
    """Return the value of `timeout_ms` as a number. Raises ProblemError (422)."""
    return whole_number("timeout_ms", value, TIMEOUT_MS_MAX)


def whole_number(name: str, value: str, most: int) -> int:
    """Return the value of a parameter as a whole number from 1 to `most`. Raises ProblemError (422)."""
    if not (value.isascii() and value.isdigit() and len(value) <= 16 and 1 <= int(value) <= most):
        raise wrong_parameter(name, f"{value[:40]!r} is no whole number from 1 to {most}")
    return int(value)


def wrong_parameter(name: str, message: str, status: int = 422) -> ProblemError:
    """Return the exception for a parameter that cannot be taken."""
    return refusal(status, f"{name}: {message}", [(("query", name), message)])
