"""Tells whether fetched data is there as it was verified.

The transfer process calls it too, so it loads nothing of the engine.
"""

from pathlib import Path

import msgspec

from railgun.host.data_folder import FETCHED


class _File(msgspec.Struct):
    path: str
    size: int


class _Manifest(msgspec.Struct):
    """The part of a manifest that is looked at here; see railgun/transfer/FORMAT.md."""

    files: list[_File]


_decode = msgspec.json.Decoder(_Manifest).decode


def is_verified(fetched: Path) -> bool:
    """Whether a folder of fetched data was verified, and still has every file with its size. Raises OSError."""
    try:
        manifest = _decode((fetched / FETCHED).read_bytes())
        return all((fetched / each.path).stat().st_size == each.size for each in manifest.files)
    except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
        return False
