"""The embedded log through the death of its process and a full disk: nothing acknowledged is lost."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from railgun.messaging.embedded.log import EmbeddedLog

WRITER = Path(__file__).with_name("log_writer.py")
ROOT = WRITER.parents[3]


def start_writer(folder: Path, durability: str, limit_bytes: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(folder), durability, "3", str(limit_bytes)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def acknowledged(lines: list[str]) -> dict[int, tuple[int, int]]:
    """By first offset the writer and the count; a last line that was cut off says nothing."""
    found = {}
    for line in lines:
        if line.endswith("\n") and line[0].isdigit():
            writer, first, count = map(int, line.split())
            found[first] = (writer, count)
    return found


def all_records(folder: Path) -> list[bytes]:
    got: list[bytes] = []
    with EmbeddedLog(folder) as log:
        end = log.end_offset("t", 0)
        while len(got) < end:
            got += log.read("t", 0, len(got), 1000, 1 << 20).values()
        assert len(got) == end
    return got


def check_prefix(
    records: list[bytes], known: list[bytes], acknowledgements: dict[int, tuple[int, int]]
) -> None:
    """What was there is there, every acknowledgement is true, and each writer's records go up by one."""
    assert records[: len(known)] == known
    for first, (writer, count) in acknowledgements.items():
        for i, value in enumerate(records[first : first + count]):
            assert value.startswith(b"%d:" % writer)
            assert i == 0 or serial_of(value) == serial_of(records[first + i - 1]) + 1
        assert len(records) >= first + count
    for writer in range(3):
        serials = [serial_of(value) for value in records[len(known) :] if value.startswith(b"%d:" % writer)]
        assert serials == list(range(len(serials)))


def serial_of(value: bytes) -> int:
    return int(value.split(b":", 2)[1])


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_killed_again_and_again(tmp_path: Path, durability: str) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    known: list[bytes] = []
    for _ in range(3):
        process = start_writer(tmp_path / "log", durability)
        assert process.stdout is not None
        assert process.stdout.readline() == f"OPEN {len(known)}\n", f"seed {seed}"
        time.sleep(chance.uniform(0.05, 0.4))
        process.send_signal(signal.SIGKILL)
        lines = process.stdout.readlines()
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
        records = all_records(tmp_path / "log")
        check_prefix(records, known, acknowledged(lines))
        known = records
    assert known


@pytest.mark.parametrize("limit_bytes", [200_000, 3_000_000])
def test_a_disk_that_takes_no_more(tmp_path: Path, limit_bytes: int) -> None:
    """The limit of file sizes stands for a full disk: writes fail midway and for good."""
    process = start_writer(tmp_path / "log", "fsync", limit_bytes)
    output, _ = process.communicate(timeout=120)
    lines = output.splitlines(keepends=True)
    assert process.returncode == 0
    assert [line for line in lines if line.startswith("FAILED")] == ["FAILED TransportIOError\n"] * 3
    records = all_records(tmp_path / "log")
    check_prefix(records, [], acknowledged(lines))
    with EmbeddedLog(tmp_path / "log") as log:
        assert log.append("t", 0, [b"on"]) == len(records)
