"""The identity of a node: a name, and the id of its data folder, which are kept in the folder."""

import platform
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

import msgspec

from railgun.history.durable_files import write_whole

IDENTITY = "node.json"
"""The file in the data folder that keeps the identity."""
AUTO = "auto"
"""The value of `cluster.node_name` that names a node after its machine, by the machine's name at the first start."""
_NAME_MAX = 200
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class IdentityError(Exception):
    """The file with the node's identity cannot be used."""


class NodeRefusedError(Exception):
    """The node cannot take part in the cluster. The text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a node. name: other nodes call it so.  folder: the id of its data folder."""

    name: str
    folder: str


class _Kept(msgspec.Struct):
    """The content of the file.

    folder: the id of the data folder.
    name: the node's name; empty if the configuration names the node.
    catalogue: the id of the catalogue whose tasks the folder holds; empty before it is known.
    """

    folder: str
    name: str = ""
    catalogue: str = ""


def node_identity(data: Path, configured: str) -> Identity:
    """Return the identity of the node of a data folder, and keep it there. The folder has to exist.

    configured: `cluster.node_name`. "auto" is the machine's name at the first start; the folder keeps it, because in a
        container the machine's name changes with each start.
    Raises IdentityError, and OSError.
    """
    path = data / IDENTITY
    kept = _read(path)
    name = configured if configured != AUTO else (kept.name if kept else "") or platform.node() or "node"
    if len(name) > _NAME_MAX:
        raise IdentityError(
            f"cluster.node_name: {name[:80]!r}… has {len(name):,} characters; a node's name has {_NAME_MAX} at most"
        )
    if _NAME.fullmatch(name) is None:
        raise IdentityError(
            f"cluster.node_name: {name[:80]!r} cannot be a node's name; it has letters, digits, dots, underscores and "
            "hyphens, and begins with a letter or digit"
        )
    identity = Identity(name, kept.folder if kept else uuid.uuid4().hex)
    wanted = _Kept(identity.folder, name if configured == AUTO else "", kept.catalogue if kept else "")
    if wanted != kept:
        write_whole(path, msgspec.json.encode(wanted).decode())
    return identity


def kept_catalogue(data: Path) -> str:
    """Return the id of the catalogue whose tasks a node's folder holds; empty if it was never kept.

    Raises IdentityError.
    """
    kept = _read(data / IDENTITY)
    return kept.catalogue if kept else ""


def keep_catalogue(data: Path, catalogue: str) -> None:
    """Keep the id of the catalogue whose tasks a node's folder holds. The folder must have an identity already.

    Raises IdentityError, and OSError.
    """
    kept = _read(data / IDENTITY)
    assert kept is not None
    if kept.catalogue != catalogue:
        kept.catalogue = catalogue
        write_whole(data / IDENTITY, msgspec.json.encode(kept).decode())


def _read(path: Path) -> _Kept | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Kept)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise IdentityError(
            f"{path}: it cannot be read: {error}; it holds the name and the id of the node: restore it, or delete it, "
            "and the node gets another id"
        ) from None
