"""Requests of the job of a live backfill to the processes that run the tasks: files in its folder. See FORMAT.md."""

from pathlib import Path

import msgspec

from railgun.history.durable_files import write_whole

REQUEST, OFFER = "request.json", "offer.json"


class BackfillRequestFile(msgspec.Struct, frozen=True):
    """history: its id.  created: of the stream, the place of its first definition.  number: which time it is asked."""

    history: str
    created: int
    number: str = ""


def write_request(file: Path, request: BackfillRequestFile) -> None:
    """Durably. Raises OSError."""
    write_whole(file, msgspec.json.encode(request).decode() + "\n")


def read_request(file: Path) -> BackfillRequestFile | None:
    """None where nothing is asked. Raises OSError."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=BackfillRequestFile)
    except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
        return None


def created_of(folder: Path) -> int | None:
    """Of the stream that a live backfill is for; None where nothing is asked for one, or it cannot be read."""
    try:
        request = read_request(folder / REQUEST) or read_request(folder / OFFER)
    except OSError:
        return None
    return None if request is None else request.created
