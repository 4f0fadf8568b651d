"""Runs the service in one process: an HTTP port with an engine behind it. Both end together."""

import contextlib
import gc
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path

import uvloop

from frontend.embedded.backend import EmbeddedBackend
from frontend.http.service import SWITCH_INTERVAL_S, Reload, Service, listen
from railgun.catalog.model import Definitions
from railgun.compiling import COMPILING, Compiling, LoggedCompiling
from railgun.config.settings import EngineSettings, Settings
from railgun.config.shown import settings_shown
from railgun.engine import configured
from railgun.engine.engine import Engine
from railgun.engine.errors import as_engine_errors
from railgun.engine.folder import check_not_in_use
from railgun.host.start import LoggedStartProgress
from railgun.kernels import compiling_alone, load_all
from reservoir.native.jit import is_image

_log = logging.getLogger("railgun.frontend")


def serve(
    settings: Settings,
    *,
    definitions: Definitions | None = None,
    on_ready: Callable[[str], None] | None = None,
    reload: Reload | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT. Return the exit code: 0, or 1 if the engine stopped by itself.

    definitions: streams and metrics that are registered at the start if they are missing.
    on_ready: is called with the URL once events are taken.
    reload: is called at SIGHUP.
    Raises AddressError and EngineError if the service cannot begin.
    """
    listener = listen(settings.http)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    compiling = Compiling()
    backend = EmbeddedBackend(
        lambda: open_engine(settings.engine, definitions, backend.running.is_doing, compiling),
        compiling.stop,
        settings.console,
    )
    with contextlib.closing(listener):
        shown = settings_shown(settings)
        service = Service(settings.http, backend, listener, on_ready, reload=reload, shown=shown)
        return uvloop.run(service.run())


def open_engine(
    settings: EngineSettings,
    definitions: Definitions | None,
    notify: Callable[[str], None],
    compiling: Compiling,
) -> Engine:
    """Open the engine of a data folder, with every kernel loaded. Kernels are the functions that are compiled.

    notify: is called with the name of a step that takes long.
    Raises EngineError; CompilingStoppedError, with nothing opened, if the compiling was stopped.
    """
    if not is_image():
        # Compiling takes minutes, so a folder that another process uses is refused before it.
        with as_engine_errors():
            check_not_in_use(Path(settings.data_folder))
        # Kernels are compiled before the engine is opened. Else it would compile them one by one as it reads its log.
        _log.info(COMPILING)
        notify(COMPILING)
        gc.enable()
        compiling.run()
        with compiling_alone(LoggedCompiling().waits):
            load_all()
    engine = configured.open_engine(settings, LoggedStartProgress(time.monotonic))
    try:
        if definitions is not None:
            engine.apply(definitions, wait=False)
    except BaseException:
        engine.close()
        raise
    return engine
