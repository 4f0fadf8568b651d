"""`railgun node`: the half of a cluster that computes: processes that run the tasks of streams on Kafka."""

import argparse
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from railgun.child_python import child_python
from railgun.cli.failures import EXIT_NO
from railgun.cli.open_files import raise_open_files_limit
from railgun.cli.parser import Command
from railgun.config.hangup import hangup_ends_it, hold_hangup
from railgun.node.signals import on_signals
from railgun.wording import counted

if TYPE_CHECKING:
    from railgun.compiling import Compiling
    from railgun.config.settings import ClusterSettings, Settings
    from railgun.node.supervisor import Supervisor

_LOADING = (
    "kernels are loaded, or compiled where this is the first start, which takes a minute or a few, once"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun node`."""
    parser.add_argument(
        "--units", metavar="N", type=int, help="processes that run tasks (0, the default: one for each core)"
    )
    parser.add_argument(
        "--data", metavar="DIR", help="where the tasks' events and state are kept (default: data)"
    )
    parser.add_argument("--broker", metavar="HOST:PORT", help="Kafka (default: 127.0.0.1:9092)")
    parser.add_argument(
        "--config", metavar="FILE", help="settings (TOML); config/railgun.toml shows them all"
    )
    parser.add_argument(
        "--until-input-ends",
        action="store_true",
        help="stop when standard input ends too: with the process that holds its other end",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Run units until asked to stop.

    Raises ConfigError, ExposedError, NodeFolderError, TokenFileError, CertificateError, OSError.
    """
    hold_hangup()
    from railgun import __version__
    from railgun.compiling import COMPILING, Compiling, CompilingStoppedError
    from railgun.config.access import guard_of, tls_of
    from railgun.config.processors import units_of
    from railgun.config.reloading import Reload
    from railgun.logs.setup import logging_as
    from railgun.messaging.kafka.configured import check_pass_through, kafka_settings
    from railgun.node.parent import Parent
    from railgun.node.server import serving
    from railgun.node.supervisor import NODE_READY
    from railgun.node.telemetry import NodeCollector
    from reservoir.native import image

    raise_open_files_limit()
    reread = partial(_load_settings, arguments)
    settings = reread()
    guard, tls, reload = guard_of(settings.http), tls_of(settings.http), Reload(settings, reread)
    check_pass_through(kafka_settings(settings))
    stopped, loaded, compiling = threading.Event(), threading.Event(), Compiling()
    _heed_signals(stopped, compiling, partial(reload, guard, tls))

    def waits_for() -> str | None:
        if not loaded.is_set():
            return f"starting: {_LOADING}"
        return supervisor.waits_for

    log, cluster = logging.getLogger("railgun.node"), settings.cluster
    folder = Path(settings.engine.data_folder)
    commands = _Commands(folder, units_of(cluster.units), _of_each_process(arguments))
    supervisor = _supervisor(folder, cluster, commands)
    collector = NodeCollector(supervisor.units, folder, __version__, supervisor.leader, supervisor.transfer)
    with (
        logging_as(settings.logging.level, settings.logging.format),
        serving(
            cluster.metrics_host, cluster.metrics_port, collector, waits_for, settings.http, guard, tls
        ) as url,
    ):
        shown = counted(len(supervisor.units), "unit")
        log.info("node: %s, broker %s; %s/metrics", shown, cluster.broker, url)

        def prepare() -> None:
            if not image.is_there():
                log.info(COMPILING)
                compiling.run()
            loaded.set()
            if arguments.until_input_ends:
                Parent(stopped)  # sets it when standard input ends

        try:
            is_well = supervisor.run(stopped, partial(_say, NODE_READY), prepare=prepare, on_shortfall=_say)
        except CompilingStoppedError:
            is_well = True
        log.info("stopped")
    return 0 if is_well else EXIT_NO


def _say(line: str) -> None:
    print(line, flush=True)


def _load_settings(arguments: argparse.Namespace) -> "Settings":
    """Load the settings in force. Raises as `load_settings` does."""
    from railgun.config.loading import flags_given, load_settings

    given = {
        "--units": ("cluster.units", arguments.units),
        "--data": ("engine.data_folder", arguments.data),
        "--broker": ("cluster.broker", arguments.broker),
    }
    return load_settings(arguments.config, os.environ, flags_given(given))


def _of_each_process(arguments: argparse.Namespace) -> list[str]:
    """Return the options that every process of the node gets."""
    given = (("--config", arguments.config), ("--broker", arguments.broker))
    return [word for option, value in given if value is not None for word in (option, value)]


class _Commands:
    """The commands of a node's processes. extra: options that each of them gets."""

    def __init__(self, folder: Path, units: int, extra: list[str]) -> None:
        self._units, self._place = units, ["--node-folder", str(folder), "--units", str(units)]
        self._extra = extra

    def units(self) -> list[list[str]]:
        """Return the command of each unit."""
        return [self._command("railgun.unit", "--index", str(index)) for index in range(self._units)]

    def leader(self) -> list[str]:
        """Return the command of the process that may lead the cluster."""
        from railgun import __version__

        began_ms = time.time_ns() // 1_000_000
        return self._command("railgun.node.leader", "--release", __version__, "--began-ms", str(began_ms))

    def transfer(self) -> list[str]:
        """Return the command of the process that serves and fetches snapshots."""
        from railgun import __version__

        return self._command("railgun.transfer", "--release", __version__)

    def _command(self, module: str, *words: str) -> list[str]:
        return child_python("-m", module, *self._place, *words, *self._extra)


def _supervisor(folder: Path, cluster: "ClusterSettings", commands: _Commands) -> "Supervisor":
    """Return the supervisor of a node's processes. Raises ConfigError."""
    from railgun.node.supervisor import Supervisor
    from railgun.transfer.address import check_transfer

    check_transfer(cluster)
    return Supervisor(
        folder,
        commands.units(),
        name=cluster.node_name,
        leader=commands.leader(),
        transfer=commands.transfer(),
        hung_after_s=cluster.hung_after_s,
    )


def _heed_signals(stopped: threading.Event, compiling: "Compiling", reload: Callable[[], None]) -> None:
    """Let SIGTERM and Ctrl-C stop the node, at once if it still compiles; and let SIGHUP read files again."""

    def stop() -> None:
        stopped.set()
        compiling.stop()

    def read_again() -> None:
        # Files may be slow to read, and the node can be asked to stop meanwhile.
        threading.Thread(target=reload, name="reload", daemon=True).start()

    of_hangup = {} if hangup_ends_it() else {signal.SIGHUP: read_again}
    on_signals({signal.SIGTERM: stop, signal.SIGINT: stop, **of_hangup})


NODE = Command(
    name="node",
    summary="run the tasks of streams whose log is Kafka",
    description=(
        "Run tasks: read the topics of streams, keep their events and state in DIR, send replies. Each of the\n"
        "N processes runs its share of all tasks. A process that dies is started again, and goes on from its\n"
        "last checkpoint. `ready` is printed once all of them have come to where their logs ended, and\n"
        "again where one was started again; `not ready: ` and names instead where a task has failed here that\n"
        "another node can answer. Where the broker is away they wait for it.\n\n"
        "SIGTERM or Ctrl-C: replies are sent, checkpoints taken, and the exit code is 0; 1 where a process\n"
        "did not end well: nothing is lost then either."
    ),
    example="railgun node --broker 127.0.0.1:9092 --data data --units 2",
    configure=configure,
    execute=execute,
)
