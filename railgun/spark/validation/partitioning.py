"""Kafka's default partitioner in NumPy, written apart from the engine's: what is checked does not check itself."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_M = np.uint32(0x5BD1E995)
_SEED = 0x9747B28C


def partition_numbers(keys: pa.Array, partitions: int) -> pa.Array:
    """int32: the partition of each key (strings or longs), null where the key is null."""
    if partitions == 1:
        return pc.if_else(pc.is_valid(keys), pa.scalar(0, pa.int32()), pa.scalar(None, pa.int32()))
    encoded = pc.dictionary_encode(keys.cast(pa.string()))
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    numbers = np.zeros(max(1, len(encoded.dictionary)), np.int32)
    for place, key in enumerate(encoded.dictionary.to_pylist()):
        numbers[place] = (murmur2(key.encode()) & 0x7FFFFFFF) % partitions
    return pa.array(numbers).take(encoded.indices)


def murmur2(data: bytes) -> int:
    """Kafka's murmur2 of some bytes, as an unsigned number."""
    words: NDArray[np.uint32] = np.frombuffer(data[: len(data) & ~3], "<u4").astype(np.uint32)
    mixed = words * _M
    mixed ^= mixed >> np.uint32(24)
    mixed *= _M
    h = (_SEED ^ len(data)) & 0xFFFFFFFF
    for word in mixed.tolist():
        h = ((h * int(_M)) & 0xFFFFFFFF) ^ word
    rest = data[len(data) & ~3 :]
    if rest:
        h = ((h ^ int.from_bytes(rest, "little")) * int(_M)) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * int(_M)) & 0xFFFFFFFF
    return h ^ (h >> 15)
