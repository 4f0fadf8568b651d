"""Runs a node beside the front-end, for one machine: with the end of either both end."""

import contextlib
import logging
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence

from frontend.http.service import Reload
from railgun.access.guard import Guard
from railgun.access.tls import Tls
from railgun.node.supervisor import NODE_NOT_READY, NODE_READY

# A node takes checkpoints of all its tasks when it is asked to stop.
_NODE_STOP_S = 90.0
_log = logging.getLogger("railgun.frontend")


class NodeBeside:
    """A node that runs as long as a block. has_failed: whether it ended before."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._ready = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self.has_failed = False
        self._signalling = threading.Lock()
        self._has_to_reload = False

    def is_ready(self) -> bool:
        """Whether all its units have caught up once, but for copies that have failed."""
        return self._ready.is_set()

    def reloading_too(self, reload: Reload) -> Reload:
        """A reload that the node hears of."""

        def both(guard: Guard, tls: Tls | None) -> None:
            reload(guard, tls)
            with self._signalling:
                self._has_to_reload = not self.is_ready()
                if not self._has_to_reload:
                    self._have_it_reload()

        return both

    def _have_it_reload(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGHUP)

    def _note_ready(self) -> None:
        """Have it reload if that was asked for before: it may not have got so far as to know the signal."""
        with self._signalling:
            self._ready.set()
            if self._has_to_reload:
                self._has_to_reload = False
                self._have_it_reload()

    @contextlib.contextmanager
    def running(self, stop: Callable[[], None]) -> Iterator[None]:
        """Run it; `stop` is called where it ends by itself."""
        leaving = threading.Event()
        # Nothing is written: its input ends when this process does, however that comes.
        process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._process = process

        def watch() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                # Events are taken all the same where a copy has failed: another node answers them.
                if line.strip() == NODE_READY.encode() or line.startswith(NODE_NOT_READY.encode()):
                    self._note_ready()
            code = process.wait()
            if not leaving.is_set():
                _log.error("the node ended with %d", code)
                self.has_failed = True
                stop()

        watcher = threading.Thread(target=watch, name="node", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            leaving.set()
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            watcher.join(_NODE_STOP_S)
            if watcher.is_alive():
                _log.error("the node did not stop in time and is killed")
                process.kill()
                watcher.join()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()
