"""A real broker is started, asked, stopped and started again; whatever stands in its way is said."""

import os
import signal
import socket
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from railgun.broker import local, pid_file
from railgun.broker.commands import Ports, properties
from railgun.broker.errors import AlreadyRunningError, PortInUseError, StartError
from railgun.broker.held_ports import held_port, number_of
from railgun.broker.local import LocalBroker
from railgun.broker.pid_file import Running, start_ticks
from tests.broker.quick_broker import unheard


@pytest.fixture
def broker_of() -> Callable[[Path], LocalBroker]:
    """As users have it, in the place of the tests' quick one."""
    return LocalBroker


def test_its_life(broker: LocalBroker) -> None:
    assert broker.status() is None
    started = broker.start(0, unheard)
    assert started.topics == {}
    client = AdminClient({"bootstrap.servers": started.address})
    client.create_topics([NewTopic("t", 3, 1)])["t"].result(30)
    asked = broker.status()
    assert asked is not None
    assert (asked.address, asked.pid, asked.topics) == (started.address, started.pid, {"t": 3})
    assert asked.uptime_s >= started.uptime_s

    with pytest.raises(AlreadyRunningError, match=str(started.pid)):
        broker.start(0, unheard)
    port = int(started.address.partition(":")[2])
    with pytest.raises(PortInUseError, match="--port"):
        LocalBroker(broker.folder / "other").start(port, unheard)

    os.kill(started.pid, signal.SIGKILL)
    os.waitpid(started.pid, 0)
    assert pid_file.read(broker.folder) is not None
    assert broker.status() is None
    again = broker.start(0, unheard)
    assert again.topics == {"t": 3}
    assert broker.stop()
    assert start_ticks(again.pid) is None
    assert pid_file.read(broker.folder) is None
    assert not broker.stop()


def test_a_broker_that_cannot_start_says_why(broker: LocalBroker) -> None:
    (broker.folder / "logs").mkdir(parents=True)
    (broker.folder / "logs" / "meta.properties").write_text("version=7\n")
    with pytest.raises(StartError, match=r"broker\.log") as caught:
        broker.start(0, unheard)
    assert "meta.properties" in caught.value.reason
    assert broker.status() is None


def test_storage_that_cannot_be_formatted_says_why(broker: LocalBroker) -> None:
    broker.folder.mkdir()
    (broker.folder / "logs").write_text("a file")
    with pytest.raises(StartError, match="could not be formatted"):
        broker.start(0, unheard)


def test_another_process_with_the_same_number_is_not_it(tmp_path: Path) -> None:
    ticks = start_ticks(os.getpid())
    assert ticks is not None
    for noted, found in ((ticks, True), (ticks - 1, False)):
        pid_file.write(tmp_path, Running(os.getpid(), noted, 0.0, 1))
        running = pid_file.read(tmp_path)
        assert running is not None
        assert running.is_alive() is found
    assert LocalBroker(tmp_path).status() is None
    assert not LocalBroker(tmp_path).stop()


def test_a_pid_file_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    for text in ("", "12", "{}", '{"pid": "x"}', "[]"):
        (tmp_path / "broker.pid").write_text(text)
        assert pid_file.read(tmp_path) is None


def test_properties_are_written_as_java_reads_them(tmp_path: Path) -> None:
    lines = properties(Path("a\\b\u00e9"), Ports(1, 2)).splitlines()
    assert "log.dirs=a\\\\b\\u00e9" in lines
    assert all("0.0.0.0" not in line for line in lines)


def test_a_port_that_may_not_be_had(broker: LocalBroker) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with pytest.raises(PortInUseError):
            broker.start(listener.getsockname()[1], unheard)


def test_a_clusters_id_is_never_taken_for_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([uuid.UUID(bytes=b"\xf8" * 16), uuid.UUID(bytes=b"\x00" * 16)])
    monkeypatch.setattr(uuid, "uuid4", lambda: next(drawn))
    assert local._new_cluster_id() == "A" * 22


def test_a_port_that_is_held_is_given_to_nobody_and_can_be_listened_at() -> None:
    with ExitStack() as stack:
        held = stack.enter_context(held_port())
        others = [stack.enter_context(held_port()) for _ in range(500)]
        assert len({number_of(each) for each in (held, *others)}) == 1 + len(others)
        with socket.create_server(("127.0.0.1", number_of(held))) as server:
            with pytest.raises(PortInUseError):
                held_port(number_of(held))
            with socket.create_connection(server.getsockname()) as client:
                accepted, address = server.accept()
                accepted.close()
                assert address == client.getsockname()
