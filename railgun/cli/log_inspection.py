"""Reads and checks every block of a data folder's embedded log, for `railgun inspect`. Changes nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from railgun.catalog.model import ALL
from railgun.catalog.names import column_name
from railgun.cli.inspection import TaskReport, inspect_task
from railgun.engine.folder import LOG, STREAMS, VERSION_FILE
from railgun.history.task_folder import place_of
from railgun.host.disk_usage import size_of
from railgun.messaging.embedded.read_only import ReadOnlyLog
from railgun.messaging.errors import OffsetOutOfRangeError, TransportError, TransportVersionError
from railgun.registry.catalog_log import TOPIC
from railgun.registry.topics import topic_of

_READ_RECORDS, _READ_BYTES = 1 << 16, 4 << 20


@dataclass(frozen=True, slots=True)
class LogReport:
    """The log as far as it can be read. size_bytes: the size of its files. damage: what is wrong, with the place."""

    folder: str
    topics: int
    partitions: int
    records: int
    size_bytes: int
    damage: tuple[str, ...]


def inspect_log(data: Path, tasks: Sequence[TaskReport]) -> LogReport | None:
    """Read all of the log of an engine's data folder, and compare it with the folder's tasks.

    tasks: reports on the tasks, which were read before.
    Returns None if the folder is not an engine's, or is empty. Raises TransportVersionError for what another release
    wrote; and OSError.
    """
    own = [task for task in tasks if (data / STREAMS) in Path(task.folder).parents]
    folder = data / LOG
    if not (folder / LOG).is_dir():
        if not own or not (folder.is_dir() or (data / VERSION_FILE).is_file()):
            return None
        gone = f"{folder}: there are tasks, and their log is gone; restore the whole folder from one copy"
        return LogReport(str(folder), 0, 0, 0, 0, (gone,))
    size_bytes = size_of(folder)
    try:
        log = ReadOnlyLog(folder)
    except TransportVersionError:
        raise
    except TransportError as error:
        return LogReport(str(folder), 0, 0, 0, size_bytes, (str(error),))
    try:
        topics, damage, records = dict(log.topics()), [], 0
        for topic, partitions in topics.items():
            for partition in range(partitions):
                try:
                    records += _read(log, topic, partition)
                except TransportError as error:
                    damage.append(str(error))
        if own and TOPIC not in topics:
            damage.append(f"{folder}: it has no catalogue; restore the whole folder from one copy")
        for task in own:
            damage += _differing(log, task)
    finally:
        log.close()
    return LogReport(str(folder), len(topics), sum(topics.values()), records, size_bytes, tuple(damage))


def _read(log: ReadOnlyLog, topic: str, partition: int) -> int:
    """Read all records of a partition. Returns how many there are."""
    offset, end, records = log.start_offset(topic, partition), log.end_offset(topic, partition), 0
    while offset < end:
        try:
            fetched = log.read(topic, partition, offset, _READ_RECORDS, _READ_BYTES)
        except OffsetOutOfRangeError:
            start = log.start_offset(topic, partition)
            if start <= offset:
                raise
            # The writer has trimmed the log meanwhile.
            offset = start
            continue
        records += len(fetched.offsets)
        offset = fetched.next_offset
    return records


def _differing(log: ReadOnlyLog, task: TaskReport) -> Iterator[str]:
    """Yield why a task and its log are not of one copy."""
    folder = Path(task.folder)
    if not folder.is_dir():  # its stream was dropped meanwhile
        return
    *_, stream, name, number = place_of(folder).parts
    partitioners = (ALL, name) if name == column_name(ALL) else (name,)
    topics = [each for each in (topic_of(stream, p) for p in partitioners) if each in log.topics()]
    if not topics or int(number) >= log.topics()[topics[0]]:
        yield f"{folder}: the log does not know of this task; restore the whole folder from one copy"
        return
    start, end = log.start_offset(topics[0], int(number)), log.end_offset(topics[0], int(number))
    state = task.state
    if state is not None and state.position > end:
        yield f"{folder}: its state is at offset {state.position}, its log ends at {end}"
    if state is not None and state.position < start:
        # The task may have taken a checkpoint after it was read, and trimmed its log up to there.
        now = inspect_task(folder).state
        if now is None or now.position < start:
            yield f"{folder}: its log begins at offset {start}, offset {state.position} is needed"
