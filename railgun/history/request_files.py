"""Requests of a deepening's job to the processes that run the tasks, as files in its folder. See FORMAT.md.

A deepening gives a live stream older history than its log has.
"""

from pathlib import Path

import msgspec

from railgun.history.durable_files import write_whole

REQUEST, OFFER = "request.json", "offer.json"
INSTALLED = "installed.json"
"""The file that says of which stream the kept histories are."""


class DeepeningRequest(msgspec.Struct, frozen=True):
    """A request, or an offer, of the deepening job.

    history: the id of the history.
    created: the place in the catalogue of the stream's first definition.
    number: distinguishes repeated requests.
    """

    history: str
    created: int
    number: str = ""


def write_request(file: Path, request: DeepeningRequest) -> None:
    """Write a request durably. Raises OSError."""
    write_whole(file, msgspec.json.encode(request).decode() + "\n")


def read_request(file: Path) -> DeepeningRequest | None:
    """Read a request; None if there is none. Raises OSError."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=DeepeningRequest)
    except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
        return None


def created_of(folder: Path) -> int | None:
    """Return the place in the catalogue at which the stream of a folder of histories was created.

    Returns None if no file says so, or if it cannot be read.
    """
    try:
        found = (read_request(folder / name) for name in (REQUEST, OFFER, INSTALLED))
        request = next((each for each in found if each is not None), None)
    except OSError:
        return None
    return None if request is None else request.created
