"""Messages between the processes of a node: what is sent arrives, and what cannot be delivered harms nothing."""

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from railgun.node.child_process import ChildProcess
from railgun.node.parent import Parent
from railgun.node.relay import (
    LINE_BYTES_MAX,
    TRANSFER,
    Fetch,
    Fetched,
    Fetching,
    MakeSnapshot,
    Message,
    Received,
    Serving,
    SnapshotMade,
    StopFetch,
    passed_on,
    received,
    sent,
    unit_address,
)
from railgun.node.supervisor import Supervisor
from tests.unit.local_units import awaited

_TASK = "payments.0/card/3"
_MESSAGES: list[Message] = [
    Serving("127.0.0.1:4711", "00ff"),
    MakeSnapshot(_TASK, "ab12"),
    SnapshotMade("ab12", "no copy is open"),
    Fetch(_TASK, [("n2", 0), ("n3", 1)], "topic", 17, {"commit": 3}, "/data/tasks/payments.0/card/3"),
    StopFetch(_TASK),
    Fetching(_TASK, "n2/0", 5, 10),
    Fetched(_TASK, "", 17, "n2/0", 10, 3),
]


@pytest.mark.parametrize("message", _MESSAGES, ids=lambda each: type(each).__name__)
def test_a_message_arrives_as_it_was_sent(message: Message) -> None:
    passed = passed_on(sent(unit_address(2), message), TRANSFER)
    assert passed is not None
    assert passed[0] == "unit 2"
    assert received(passed[1]) == Received(TRANSFER, message)


def test_what_is_no_message_is_dropped() -> None:
    assert passed_on(b'{"version":1,"to":"leader"}\n', TRANSFER) is None
    assert passed_on(b"metrics\n", TRANSFER) is None
    assert passed_on(sent("leader", Serving("x" * LINE_BYTES_MAX)), TRANSFER) is None
    # One of a later release.
    assert received(b'{"from":"transfer","message":{"kind":"later"}}') is None


def test_a_parent_hands_on_long_messages(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    taken, stopped = list[Received](), threading.Event()
    Parent(stopped, reads, take=taken.append)
    message = Fetch(_TASK, [("n" * 200, unit) for unit in range(200)], "topic", 17, {"commit": 3}, "/data")
    passed = passed_on(sent("transfer", message), "unit 0")
    assert passed is not None
    assert 40_000 < len(passed[1]) < LINE_BYTES_MAX
    for _ in range(2):
        os.write(writes, passed[1])
    os.close(writes)
    assert stopped.wait(10)
    assert taken == [Received("unit 0", message)] * 2


_ECHO = """
import sys
from railgun.node.relay import StopFetch, received, sent
print('{"ready": true}', flush=True)
if sys.argv[1] == "asks":
    sys.stdout.buffer.write(sent("transfer", StopFetch("a task")))
    sys.stdout.buffer.write(sent("unit 7", StopFetch("a task")))
    sys.stdout.flush()
for line in sys.stdin.buffer:
    found = received(line)
    if found is not None and sys.argv[1] == "answers":
        sys.stdout.buffer.write(sent(found.sender, found.message))
        sys.stdout.flush()
    elif found is not None:
        open(sys.argv[2], "w").write(f"{found.sender}: {found.message.task}\\n")
"""


def test_a_supervisor_relays_messages_between_its_processes(tmp_path: Path) -> None:
    told = tmp_path / "told"
    node = Supervisor(
        tmp_path / "data",
        [[sys.executable, "-c", _ECHO, "asks", str(told)], [sys.executable, "-c", _ECHO, "idle"]],
        transfer=[sys.executable, "-c", _ECHO, "answers"],
    )
    stopped = threading.Event()
    running = threading.Thread(target=node.run, args=[stopped])
    # The first unit may ask before the other process runs: then its message is dropped, and it asks again.
    running.start()
    try:
        while not told.is_file():
            awaited(lambda: node.has_caught_up and node.transfer is not None and node.transfer.is_ready)
            node._relay("unit 0", sent("transfer", StopFetch("a task")))
            threading.Event().wait(0.05)
        awaited(lambda: told.read_text().endswith("\n"))
    finally:
        stopped.set()
        running.join()
    assert told.read_text() == "transfer: a task\n"


def test_the_node_is_ready_without_its_transfer_process(tmp_path: Path) -> None:
    ready = threading.Event()
    unit = "import sys; print('{\"ready\": true}', flush=True); sys.stdin.read()"
    node = Supervisor(
        tmp_path / "data",
        [[sys.executable, "-c", unit]],
        transfer=[sys.executable, "-c", "raise SystemExit(1)"],
    )
    stopped = threading.Event()
    running = threading.Thread(target=node.run, args=[stopped, ready.set])
    running.start()
    try:
        assert ready.wait(30)
        awaited(lambda: node.transfer is not None and node.transfer.starts > 1)
        assert node.waits_for is None
    finally:
        stopped.set()
        running.join()


def test_a_line_that_the_pipe_takes_in_part_is_not_mixed_with_the_next(tmp_path: Path) -> None:
    gate, told = tmp_path / "gate", tmp_path / "told"
    slow = (
        "import os, sys, time\n"
        f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
        f"to = open({str(told)!r}, 'wb')\n"
        "for line in sys.stdin.buffer:\n"
        "    to.write(line); to.flush()\n"
    )
    child = ChildProcess(0, [sys.executable, "-c", slow])
    child.watch()
    lines = [bytes([65 + number % 26]) * 50_000 + b"\n" for number in range(8)]
    were_taken = [child.tell(line) for line in lines]
    assert not all(were_taken)
    gate.touch()
    awaited(lambda: child.tell(b"end\n"))
    awaited(lambda: told.is_file() and told.read_bytes().endswith(b"end\n"))
    child.ask_to_stop()
    child.end(time.monotonic() + 60)
    taken = [line for line, was_taken in zip(lines, were_taken, strict=True) if was_taken]
    assert told.read_bytes() == b"".join(taken) + b"end\n"
