"""Says how far the compiling of kernels is: what is told of it, and in which words."""

from typing import Protocol

LINKING = "all kernels are compiled, and are linked to one image, which takes some seconds"


class Told(Protocol):
    """Is told how far compiling is, a few times a second."""

    def at(self, done: int, of: int) -> None:
        """So many functions are compiled. A few are never compiled by themselves, so it ends below `of`."""

    def waits(self, pid: int | None) -> None:
        """Another process compiles, and is waited for. pid: its number, None if it is not known."""

    def links(self) -> None:
        """All kernels are compiled. They are loaded, and linked to an image, which takes many seconds. Called once."""


def waiting_text(pid: int | None) -> str:
    """Return what people read while another process compiles."""
    named = "another process" if pid is None else f"another process (pid {pid})"
    return f"{named} compiles kernels; waiting for it"
