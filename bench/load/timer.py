"""A timer that a loop over file descriptors can wait for, to the microsecond: epoll itself rounds up to whole ms."""

import ctypes
import os
from types import TracebackType
from typing import Self

_CLOCK_MONOTONIC, _ABSOLUTE = 1, 1
_NONBLOCK = os.O_NONBLOCK | os.O_CLOEXEC


class _Spec(ctypes.Structure):
    """struct itimerspec: the interval, then the first time, each in seconds and nanoseconds."""

    _fields_ = [(name, ctypes.c_long) for name in ("every_s", "every_ns", "first_s", "first_ns")]


class Timer:
    """A timerfd of the monotonic clock. Raises OSError."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = self._libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._spec = _Spec(0, 0, 0, 0)

    def arm(self, at_ns: int) -> None:
        """Be readable from `at_ns` of time.monotonic_ns on; at once where that is past."""
        self._spec.first_s, self._spec.first_ns = divmod(at_ns, 1_000_000_000)
        if self._libc.timerfd_settime(self.fd, _ABSOLUTE, ctypes.byref(self._spec), None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.fd)
