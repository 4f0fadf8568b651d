"""A command that is a guest on its machine: what answers others there goes first."""

import ctypes
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType

_LOWEST = 19
_AUTOGROUP, _HAS_AUTOGROUPS = Path("/proc/self/autogroup"), Path("/proc/sys/kernel/sched_autogroup_enabled")
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PR_SET_PDEATHSIG = 1


def be_a_guest() -> None:
    """From now on this process, and what it starts, gets the time that nobody else wants. There is no way back.

    Where the system has the policy for that (Linux), one that wakes up takes the processor from it at once; being nice
    alone leaves it a few milliseconds at a time. Where it shares processors among sessions first (Linux's autogroups),
    a process that is in one with others, a shell's say, goes on as a child in a session of its own: the caller is that
    child, and this process waits for it, passes signals on to it, and ends as it did, by a SystemExit that this raises.
    """
    if os.getsid(0) != os.getpid() and _shares_among_sessions():
        _go_on_in_a_session_of_its_own()
    with suppress(OSError):
        os.nice(_LOWEST)
    if hasattr(os, "SCHED_IDLE"):
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if os.getsid(0) == os.getpid():
        with suppress(OSError):
            _AUTOGROUP.write_text(str(_LOWEST))


def _shares_among_sessions() -> bool:
    with suppress(OSError):
        return _HAS_AUTOGROUPS.read_text().strip() == "1"
    return False


def _go_on_in_a_session_of_its_own() -> None:
    """Raises SystemExit in the process that was there, once the child has ended: what its caller has open by now is let
    go of twice.
    """
    if threading.active_count() > 1:
        # The child would have none of the others.
        return
    sys.stdout.flush()
    sys.stderr.flush()
    # Where it is ignored, nobody is told how a child ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # One that comes before there is somebody to pass it on waits.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED_ON, signal.SIGTSTP})
    parent, child = os.getpid(), os.fork()
    if not child:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.setsid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return
    _pass_on(child)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for number in _PASSED_ON:
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(code if code >= 0 else 128 - code)


def _pass_on(child: int) -> None:
    """Signals, and being stopped and going on (Ctrl-Z, fg), to the leader of a session."""

    def stop(number: int, frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)

    def go_on(number: int, frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGCONT)

    def pass_on(number: int, frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    signal.signal(signal.SIGTSTP, stop)
    signal.signal(signal.SIGCONT, go_on)
