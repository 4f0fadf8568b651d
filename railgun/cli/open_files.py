"""Raises the limit of open files of a server as far as the system allows."""

import resource
from contextlib import suppress


def raise_open_files_limit() -> None:
    """Raise the soft limit to the hard one, for this process and those it starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems report "unlimited" and refuse it. Then the limit stays as it is.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
