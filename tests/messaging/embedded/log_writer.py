"""A process that appends to an embedded log until it is killed, saying what was acknowledged.

Arguments: folder, durability, threads, limit of a file in bytes (0: none). Each line of its output is a
thread's number, a first offset and a count, written after the acknowledgement; `FAILED <type>` ends it.
"""

import resource
import signal
import sys
import threading
from pathlib import Path

from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.errors import TransportError
from railgun.messaging.transport import Entry, TopicPartition
from railgun.wire.records import Records

say = threading.Lock()


def record(writer: int, serial: int) -> bytes:
    """What a writer's n-th record holds: nothing that compresses away, and its size varies."""
    seed = (writer * 1_000_003 + serial) * 2_654_435_761
    return b"%d:%d:" % (writer, serial) + seed.to_bytes(8, "little") * (seed // 7 % 100)


def write(log: EmbeddedLog, writer: int) -> None:
    serial = 0
    while True:
        count = 1 + serial % 37
        records = [record(writer, serial + i) for i in range(count)]
        try:
            if writer % 2:
                first = log.append("t", 0, records)
            else:
                first = log.submit([Entry(TopicPartition("t", 0), Records.of(records))]).result()[0]
        except TransportError as error:
            told(f"FAILED {type(error).__name__}")
            return
        told(f"{writer} {first} {count}")
        serial += count


def told(line: str) -> None:
    with say:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def main() -> None:
    folder, durability, threads, limit_bytes = sys.argv[1:]
    log = EmbeddedLog(Path(folder), Durability(durability))
    log.create_topic("t", 1)
    if int(limit_bytes):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit_bytes), int(limit_bytes)))
    told(f"OPEN {log.end_offset('t', 0)}")
    writers = [threading.Thread(target=write, args=(log, i)) for i in range(int(threads))]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


if __name__ == "__main__":
    main()
