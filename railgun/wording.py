"""Numbers of things in words."""


def counted(number: int, noun: str, nouns: str = "") -> str:
    """`1 chunk`, `12,345 chunks`. nouns: where it does not end in an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {nouns or noun + 's'}"
