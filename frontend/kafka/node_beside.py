"""Runs a node beside the front-end, for a cluster on one machine. If either ends, both do."""

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
    """A node that runs as long as the block of `running`. has_failed: whether it ended before the block."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._ready = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self.has_failed = False
        self._signalling = threading.Lock()
        self._has_to_reload = False

    def is_ready(self) -> bool:
        """Whether all units of the node have caught up once, except for copies that have failed."""
        return self._ready.is_set()

    def reloading_too(self, reload: Reload) -> Reload:
        """Return a reload that is passed on to the node."""

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
        """Note that the node is ready. A reload that came before is passed on now: the node may not handle SIGHUP yet
        while it starts."""
        with self._signalling:
            self._ready.set()
            if self._has_to_reload:
                self._has_to_reload = False
                self._have_it_reload()

    @contextlib.contextmanager
    def running(self, stop: Callable[[], None]) -> Iterator[None]:
        """Run the node while the block runs. `stop` is called if the node ends by itself."""
        leaving = threading.Event()
        # Nothing is written to its input, whose end tells the node that this process has ended, however that came.
        process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._process = process

        def watch() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                # A node that is not ready because a copy has failed counts too: another node answers for the copy.
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
