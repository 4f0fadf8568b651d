"""Where an event goes: murmur2 of the key bytes, as Kafka's default partitioner."""

_MASK = 0xFFFFFFFF
_M = 0x5BD1E995


def murmur2(key: bytes) -> int:
    """The 32-bit hash, unsigned, of `org.apache.kafka.common.utils.Utils.murmur2`."""
    h = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for start in range(0, whole, 4):
        k = int.from_bytes(key[start : start + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if key[whole:]:
        h = (h ^ int.from_bytes(key[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def key_bytes(value: str | int) -> bytes:
    """UTF-8 of a string, ASCII decimal of a long."""
    return value.encode() if isinstance(value, str) else str(value).encode("ascii")


def partition(value: str | int, partitions: int) -> int:
    """The partition of a key among `partitions`: the hash without its sign bit, modulo."""
    return (murmur2(key_bytes(value)) & 0x7FFFFFFF) % partitions
