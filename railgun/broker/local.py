"""The local broker of one data folder: starts it, stops it, and checks whether it answers."""

import os
import signal
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from railgun.broker import pid_file
from railgun.broker.commands import HOST, Ports, find_java, format_command, properties, serve_command
from railgun.broker.errors import (
    AlreadyRunningError,
    NotRunningError,
    OtherPartitionsError,
    StartError,
    StopError,
    TopicError,
)
from railgun.broker.held_ports import held_port, number_of
from railgun.broker.installation import Say, install
from railgun.broker.pid_file import Running, reap, spawn
from railgun.exclusive import exclusive


def topics(address: str, timeout_s: float) -> Mapping[str, int] | None:
    """Return the number of partitions by topic, without Kafka's own topics; None if nothing answers in time."""
    client = AdminClient(
        {
            "bootstrap.servers": address,
            "socket.timeout.ms": max(int(timeout_s * 1000), 10),
            # A missing broker refuses connections, as expected. Nobody wants to read about that.
            "log_level": 0,
        }
    )
    try:
        cluster = client.list_topics(timeout=timeout_s)
    except KafkaException:
        return None
    if not cluster.brokers:
        return None
    return {name: len(topic.partitions) for name, topic in cluster.topics.items() if name[:2] != "__"}


_FORMAT_S = 60
_READY_S = 60
_STOP_S = 30
_ANSWER_S = 5


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a broker. topics: the number of partitions by name; None if it runs but does not answer."""

    address: str
    pid: int
    data: Path
    uptime_s: float
    topics: Mapping[str, int] | None


class LocalBroker:
    """A broker on loopback, with the folder of its data, log and pid file. All methods raise BrokerError.

    java_options: further options for its Java process.
    """

    def __init__(self, folder: Path, java_options: Sequence[str] = ()) -> None:
        self.folder = folder.absolute()
        self._java_options = java_options
        self._log = self.folder / "broker.log"
        self._properties = self.folder / "server.properties"

    def start(self, port: int, say: Say) -> Status:
        """Fetch what is missing, start the broker, and return when it answers.

        port: 0 lets the system choose.
        say: is told what takes long.
        """
        java = find_java()
        with exclusive(self.folder / "control.lock"):
            running = self._running()
            if running is not None:
                raise AlreadyRunningError(str(self.folder), _address(running.port), running.pid)
            pid_file.remove(self.folder)
            with held_port(port) as client, held_port() as controller:
                ports = Ports(number_of(client), number_of(controller))
                jars = install(say)
                self._prepare(java, jars, ports)
                say(f"starting a broker at {_address(ports.client)}, its data in {self.folder}")
                command = serve_command(java, jars, self._properties, self._java_options)
                running = self._launch(command, ports.client)
        return self._status(running)

    def stop(self) -> bool:
        """End the broker, and wait until it has ended. Returns False if none was running."""
        with exclusive(self.folder / "control.lock"):
            running = self._running()
            if running is not None:
                self._end(running)
            pid_file.remove(self.folder)
        return running is not None

    def status(self) -> Status | None:
        """Return the status of the broker; None if it is not running."""
        running = self._running()
        return None if running is None else self._status(running)

    def make_topic(self, name: str, partitions: int) -> bool:
        """Make a topic on the broker, which runs. Returns False if it is there already, with as many partitions."""
        running = self._running()
        if running is None:
            raise NotRunningError(str(self.folder))
        client = AdminClient({"bootstrap.servers": _address(running.port), "log_level": 0})
        wanted = NewTopic(name, partitions, 1)
        try:
            client.create_topics([wanted], operation_timeout=_ANSWER_S, request_timeout=_READY_S)[
                name
            ].result()
        except KafkaException as error:
            there = None
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                there = (topics(_address(running.port), _ANSWER_S) or {}).get(name)
            if there is None:
                raise TopicError(name, error.args[0].str().rstrip(".")) from error
            if there != partitions:
                raise OtherPartitionsError(name, there) from error
            return False
        return True

    def _running(self) -> Running | None:
        noted = pid_file.read(self.folder)
        return noted if noted is not None and noted.is_alive() else None

    def _status(self, running: Running) -> Status:
        address = _address(running.port)
        uptime_s = max(time.time() - running.started_at, 0.0)
        return Status(address, running.pid, self.folder, uptime_s, topics(address, _ANSWER_S))

    def _prepare(self, java: Path, jars: Path, ports: Ports) -> None:
        """Write the properties. Format the storage if that was never done."""
        logs = self.folder / "logs"
        self._properties.write_text(properties(logs, ports), encoding="ascii")
        if (logs / "meta.properties").exists():
            return
        cluster_id = _new_cluster_id()
        command = format_command(java, jars, cluster_id, self._properties)
        ran = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_FORMAT_S)
        if ran.returncode:
            printed = (ran.stderr or ran.stdout).strip().splitlines() or ["no message"]
            raise StartError(
                str(logs),
                f"its storage could not be formatted ({printed[-1][:300]})",
                "check the folder's disk and permissions, or name another one with --data",
            )

    def _launch(self, command: list[str], port: int) -> Running:
        pid = spawn(command, self._log)
        try:
            running = Running(pid, pid_file.start_ticks(pid) or 0, time.time(), port)
            pid_file.write(self.folder, running)
            self._await(running, port)
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            reap(pid, wait=True)
            pid_file.remove(self.folder)
            raise
        return running

    def _await(self, running: Running, port: int) -> None:
        """Return when the broker answers."""
        deadline = time.monotonic() + _READY_S
        while time.monotonic() < deadline:
            if not running.is_alive():
                raise StartError(
                    str(self._log), f"the broker ended while starting ({self._last_words()})", _LOOK
                )
            if _listens(port) and topics(_address(port), _ANSWER_S) is not None:
                return
            time.sleep(0.05)
        raise StartError(str(self._log), f"the broker did not answer within {_READY_S} s", _LOOK)

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        telling = [line for line in lines if "Exception" in line or "ERROR" in line]
        return (telling or lines or ["no message"])[-1].strip()[:300]

    def _end(self, running: Running) -> None:
        """Ask the broker to end, and kill it if it does not in time. Either way acknowledged records are in its log."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(running.pid, number)
            except ProcessLookupError:
                return
            except PermissionError as error:
                raise StopError(
                    f"process {running.pid}", "it belongs to another user", "ask them to stop it"
                ) from error
            deadline = time.monotonic() + _STOP_S
            while time.monotonic() < deadline:
                if not running.is_alive():
                    reap(running.pid)
                    return
                time.sleep(0.05)
        raise StopError(f"process {running.pid}", "it does not end", "check the disk that holds its data")


_LOOK = "look there for the cause; a folder that is damaged can be deleted, with its topics"


def _new_cluster_id() -> str:
    """Return an id that does not begin with a dash, which the command would take for an option."""
    while True:
        made = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not made.startswith("-"):
            return made


def _address(port: int) -> str:
    return f"{HOST}:{port}"


def _listens(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((HOST, port)) == 0
