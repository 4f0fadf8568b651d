"""The figures of the transfer process, which the node shows as metrics."""

import threading
from dataclasses import asdict, dataclass, field


@dataclass(slots=True)
class _Counts:
    """By the name of the metric behind `railgun_transfer_`."""

    served_bytes_total: int = 0
    fetched_bytes_total: int = 0
    fetches_running: int = 0
    fetches_total: int = 0
    fetches_failed_total: int = 0


@dataclass(slots=True)
class Figures:
    """Counts what is served and fetched. Any thread may use it."""

    _counts: _Counts = field(default_factory=_Counts)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: str, amount: int = 1) -> None:
        """Add to a count. name: a field of _Counts."""
        with self._lock:
            setattr(self._counts, name, getattr(self._counts, name) + amount)

    def now(self) -> dict[str, int]:
        """Return all counts by name."""
        with self._lock:
            return asdict(self._counts)
