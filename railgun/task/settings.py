"""The identity of a task, and its settings: its limits in memory and files, and how often it takes checkpoints."""

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """Identifies a task: a partition of a stream's partitioner. `key`: the stream's 16 secret bytes."""

    stream: str
    partitioner: str
    partition: int
    key: bytes

    def __str__(self) -> str:
        return f"{self.stream}/{self.partitioner}/{self.partition}"


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """Limits in bytes, events and seconds. None of them changes a result, only speed and memory.

    row_cache_bytes: the most memory for rows of entities.
    page_cache_bytes: the most memory for pages of trees, strings and wide sums.
    chunk_cache_bytes: the most memory for decoded chunks: by default 240 and more of one group-by and one number.
    block_cache_bytes: the most memory for blocks of stored state.
    write_buffer_bytes: the most memory for state that was written, but is not in RocksDB's tables yet.
    chunk_events, segment_bytes: the size of chunks and segments on disk. A task that has chunks keeps their size.
    batch_events_max: how many records are run at once.
    result_bytes_max: the most bytes of results of one batch.
    crossings_max: how many crossing rows are held at a time. A crossing row is an event that passes a window's edge.
    checkpoint_interval_s: the time from the end of one checkpoint to the start of the next.
    checkpoint_bytes: a checkpoint also starts once this much state was written since the last one ended, for rows that
        have no room in memory. Until then the values that were overwritten stay on disk too.
    replay_s: a checkpoint comes earlier if a recovery would take longer than this to process the new records again,
        as far as the process has time to spare.
    trickle_bytes: how much state is written between two batches while a checkpoint is under way; less if that takes
        long.
    fill_rows_max: how many rows one slice of a fill processes. A fill computes a new metric from stored events.
    sweep_interval_s: the time between two slices of the sweep, which deletes rows that hold nothing any more.
    """

    row_cache_bytes: int = 512 * MIB
    page_cache_bytes: int = 64 * MIB
    chunk_cache_bytes: int = 80 * MIB
    block_cache_bytes: int = 64 * MIB
    write_buffer_bytes: int = 64 * MIB
    chunk_events: int = 8192
    segment_bytes: int = 64 * MIB
    batch_events_max: int = 2048
    result_bytes_max: int = 16 * MIB
    crossings_max: int = 1 << 20
    checkpoint_interval_s: float = 10.0
    checkpoint_bytes: int = 1024 * MIB
    replay_s: float = 0.4
    trickle_bytes: int = 256 * 1024
    fill_rows_max: int = 2048
    sweep_interval_s: float = 0.1
