"""Checks out another revision of a tree, inside the tree's .cache."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class UnknownRevisionError(Exception):
    """Git does not know a revision of this name."""


def commit_of(tree: Path, revision: str) -> str:
    """Return the commit that a name stands for. Raises UnknownRevisionError."""
    try:
        return _git(tree, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").strip()
    except subprocess.CalledProcessError:
        raise UnknownRevisionError(f"{revision}: no revision of this tree") from None


@contextmanager
def checked_out(tree: Path, commit: str) -> Iterator[Path]:
    """Yield a folder inside the tree's .cache that holds a commit. It is removed afterwards."""
    folder = tree / ".cache" / "compare" / commit[:12]
    try:
        # A comparison that was killed may have left the folder.
        shutil.rmtree(folder, ignore_errors=True)
        _git(tree, "worktree", "add", "--quiet", "--detach", "--force", str(folder), commit)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _git(tree, "worktree", "prune")


def changed_benches(tree: Path, commit: str) -> list[str]:
    """Return the files of the bench, and of the list of packages, that differ between the tree and a commit."""
    return _git(tree, "diff", "--name-only", commit, "--", "bench", "requirements-dev.lock").split()


def _git(tree: Path, *arguments: str) -> str:
    command = ["git", "-C", str(tree), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
