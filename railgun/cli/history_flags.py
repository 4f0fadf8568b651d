"""How history is named on the command line: where it is, what its fields are made of."""

import argparse
from pathlib import Path


def absolute_places(history: list[str], format_: str | None) -> list[str]:
    """Local paths become absolute: the driver and executors may stand elsewhere."""
    if format_ == "table":
        return history
    return [place if "://" in place else str(Path(place).absolute()) for place in history]


def name_and_value(text: str) -> tuple[str, str]:
    """Of NAME=VALUE. Raises ArgumentTypeError."""
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise argparse.ArgumentTypeError(f"{text} is not of the form name=value")
    return name.strip(), value.strip()
