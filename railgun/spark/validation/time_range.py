"""The range of events that a validation compares, by their own times."""

from dataclasses import dataclass

from railgun.spark.errors import OptionError
from railgun.wording import time_text


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Times from `from_ms` on and before `until_ms`; None for no limit. Raises OptionError if the range is empty."""

    from_ms: int | None = None
    until_ms: int | None = None

    def __post_init__(self) -> None:
        if self.from_ms is not None and self.until_ms is not None and self.from_ms >= self.until_ms:
            raise OptionError(
                f"from {time_text(self.from_ms)} until {time_text(self.until_ms)}: the end is not after the beginning"
            )

    @property
    def is_all(self) -> bool:
        """Whether it contains all times."""
        return self.from_ms is None and self.until_ms is None

    def holds(self, time: str) -> str:
        """SQL, never null: whether a time (SQL, ms) is in the range. Only the range of all times contains a null."""
        ends = [] if self.from_ms is None else [f"{time} >= {self.from_ms}L"]
        ends += [] if self.until_ms is None else [f"{time} < {self.until_ms}L"]
        return f"coalesce({' AND '.join(ends)}, false)" if ends else "true"

    def as_text(self) -> str:
        """Return this as text for people."""
        parts = [] if self.from_ms is None else [f"from {time_text(self.from_ms)}"]
        parts += [] if self.until_ms is None else [f"until {time_text(self.until_ms)}"]
        return " ".join(parts) or "of all times"


ALL_TIMES = TimeRange()
