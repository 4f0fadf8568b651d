"""A command that is a guest on its machine: what answers others there goes first."""

import ctypes
import os
import re
import signal
import sys
import threading
from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from types import FrameType

from railgun.config.processors import processors as processors_here

_LOWEST = 19
_AUTOGROUP, _HAS_AUTOGROUPS = Path("/proc/self/autogroup"), Path("/proc/sys/kernel/sched_autogroup_enabled")
_THREADS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PR_SET_PDEATHSIG = 1


def be_a_guest(processors: int | None = None) -> None:
    """From now on this process, and what it starts, gets the time that nobody else wants, and of so many processors
    alone. There is no way back. processors: half of those that it has (a container's quota counted) where it is None,
    all where it is 0.

    The others are kept free because a kernel without preemption ends first what it has begun for a guest (memory that
    is mapped or freed, files that are written), for milliseconds: whoever wakes up meanwhile goes where none is.

    Where the system has the policy for that (Linux), one that wakes up takes the processor from it at once; being nice
    alone leaves it a few milliseconds at a time. Where it shares processors among sessions first (Linux's autogroups),
    a process that is in one with others, a shell's say, goes on as a child in a session of its own: the caller is that
    child, and this process waits for it, passes signals on to it, and ends as it did, by a SystemExit that this raises.
    """
    if os.getsid(0) != os.getpid() and _shares_among_sessions():
        _go_on_in_a_session_of_its_own()
    if hasattr(os, "sched_setaffinity"):
        with suppress(OSError):
            count = max(1, processors_here() // 2) if processors is None else processors
            os.sched_setaffinity(0, _chosen(os.sched_getaffinity(0), count))
    with suppress(OSError):
        os.nice(_LOWEST)
    if hasattr(os, "SCHED_IDLE"):
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if os.getsid(0) == os.getpid():
        with suppress(OSError):
            _AUTOGROUP.write_text(str(_LOWEST))


def _chosen(there: Set[int], processors: int) -> Set[int]:
    """So many of the processors, the last ones; of threads that share a core, all or none, as far as it goes."""
    return set(sorted(there, key=lambda each: (_first_of_core(each), each))[-(processors or len(there)) :])


def _first_of_core(processor: int) -> int:
    with suppress(OSError, ValueError):
        threads = _THREADS.format(processor)
        return int(re.split(r"[,-]", Path(threads).read_text().strip())[0])
    return processor


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
    # One that comes before there is somebody to pass it on, or a session to stop, waits.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED_ON, signal.SIGTSTP, signal.SIGCHLD})
    begun, begins = os.pipe()
    parent, child = os.getpid(), os.fork()
    if not child:
        os.setsid()
        _end_with(parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(begun)
        os.close(begins)
        return
    os.close(begins)
    os.read(begun, 1)
    os.close(begun)
    code = os.waitstatus_to_exitcode(_await_passing_on(child, mask))
    for number in _PASSED_ON:
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(code if code >= 0 else 128 - code)


def _end_with(parent: int) -> None:
    """Be killed where the parent is, by what it cannot pass on."""
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL):
        sys.stderr.write(
            f"this system does not end processes with their parents: where {parent} is killed, {os.getpid()} goes on\n"
        )
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _await_passing_on(child: int, mask: set[int]) -> int:
    """How a child ended, the leader of a session: it gets the signals that come, is stopped and goes on with this
    process (Ctrl-Z, fg). mask: of signals, from here on.
    """
    # Through a pipe: a handler in Python runs too late for what comes just before a wait.
    noted, notes = os.pipe()
    os.set_blocking(notes, False)
    signal.set_wakeup_fd(notes, warn_on_full_buffer=False)
    for number in (*_PASSED_ON, signal.SIGTSTP, signal.SIGCONT, signal.SIGCHLD):
        signal.signal(number, _lies_in_the_pipe)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    while True:
        number = signal.Signals(os.read(noted, 1)[0])
        if number == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status
        elif number == signal.SIGTSTP:
            os.killpg(child, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
        elif number == signal.SIGCONT:
            os.killpg(child, signal.SIGCONT)
        else:
            os.kill(child, number)


def _lies_in_the_pipe(number: int, frame: FrameType | None) -> None:
    """A signal's number does."""
