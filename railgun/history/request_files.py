"""What the job that deepens a stream asks of those that run its tasks: files in the deepening's folder. FORMAT.md."""

from pathlib import Path

import msgspec

from railgun.history.durable_files import write_whole

REQUEST, OFFER = "request.json", "offer.json"


class Asked(msgspec.Struct, frozen=True):
    """history: its id.  created: of the stream, the place of its first definition.  number: which time it is asked."""

    history: str
    created: int
    number: str = ""


def write_asked(file: Path, asked: Asked) -> None:
    """Durably. Raises OSError."""
    write_whole(file, msgspec.json.encode(asked).decode() + "\n")


def read_asked(file: Path) -> Asked | None:
    """None where nothing is asked. Raises OSError."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Asked)
    except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
        return None


def created_of(folder: Path) -> int | None:
    """Of the stream that a deepening is for; None where nothing is asked for one, or it cannot be read."""
    try:
        asked = read_asked(folder / REQUEST) or read_asked(folder / OFFER)
    except OSError:
        return None
    return None if asked is None else asked.created
