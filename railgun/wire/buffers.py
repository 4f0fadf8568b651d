"""Where the bytes of a `bytes` object lie, for kernels: found in 0.1 µs instead of 1 µs through an array."""

# CPython keeps them inside the object, after its head; the object's basic size counts the final zero byte.
_HEAD_BYTES = bytes.__basicsize__ - 1


def bytes_address(data: bytes) -> int:
    """Address of the first byte. The caller keeps the object alive and must not write there."""
    return id(data) + _HEAD_BYTES
