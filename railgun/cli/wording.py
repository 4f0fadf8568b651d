"""Numbers, sizes and durations as people read them."""

_UNITS = ("kB", "MB", "GB", "TB", "PB")


def counted(number: int, noun: str) -> str:
    """`1 chunk`, `12,345 chunks`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_text(size_bytes: int) -> str:
    """`512 bytes`, `45.2 MB`: decimal units."""
    if size_bytes < 1000:
        return counted(size_bytes, "byte")
    size = float(size_bytes)
    for unit in _UNITS:
        size /= 1000
        if size < 999.95 or unit == _UNITS[-1]:
            break
    return f"{size:,.1f} {unit}"


def duration_text(seconds: float) -> str:
    """`0.42 s`, `12.3 s`, `4 min 5 s`, `2 h 3 min`."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
