"""Makes the ZIP file of a support bundle of its parts, each within bounds of time and size."""

import asyncio
import io
import logging
import zipfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from frontend.problems import ProblemError
from railgun.access.guard import Caller

PART_S = 10.0
"""How long a part may take. The parts are made at the same time."""
PART_BYTES = 32 << 20
"""How large a part may be, before it is compressed."""
ABOUT = "about.json"
_log = logging.getLogger("railgun.frontend")


@dataclass(frozen=True, slots=True)
class Part:
    """A file of the bundle. make: returns what is in it, for a caller. None: there is no such thing at this server."""

    name: str
    make: Callable[[Caller], Awaitable[bytes | None]]


async def archive(parts: Sequence[Part], about: Mapping[str, Any], caller: Caller) -> bytes:
    """Return the ZIP file. `about.json` says which parts are missing, and why."""
    made = await asyncio.gather(
        *(asyncio.wait_for(part.make(caller), PART_S) for part in parts), return_exceptions=True
    )
    files: dict[str, bytes] = {}
    left_out: dict[str, str] = {}
    for part, found in zip(parts, made, strict=True):
        if isinstance(found, bytes) and len(found) <= PART_BYTES:
            files[part.name] = found
        elif found is not None:
            left_out[part.name] = _reason(part, found, caller)
    return await asyncio.to_thread(_zipped, {ABOUT: as_json({**about, "left_out": left_out}), **files})


def as_json(content: object) -> bytes:
    """Return JSON that people read."""
    return msgspec.json.format(msgspec.json.encode(content), indent=1)


def _reason(part: Part, found: bytes | BaseException, caller: Caller) -> str:
    """Return why a part is left out."""
    if isinstance(found, bytes):
        return f"it has {len(found):,} bytes; a bundle takes {PART_BYTES:,} of one file"
    if isinstance(found, ProblemError):
        return found.for_caller(caller).problem.detail
    if isinstance(found, TimeoutError):
        return f"it was not there within {PART_S:g} s"
    # A bundle is asked for where something is broken.
    _log.error("a defect: %s of a support bundle", part.name, exc_info=found)
    return "a defect of this program; the server's log shows where"


def _zipped(files: Mapping[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in files.items():
            written.writestr(name, content)
    return target.getvalue()
