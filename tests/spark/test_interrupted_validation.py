"""A validation that is interrupted says nothing more to Spark: it may stand in the middle of a call."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from railgun.spark.sessions import kept


class Frame:
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def persist(self, level: object) -> "Frame":
        self.asked.append("persist")
        return self

    def unpersist(self) -> None:
        self.asked.append("unpersist")


@pytest.mark.parametrize(
    ("error", "is_let_go"),
    [(None, True), (ValueError, True), (KeyboardInterrupt, False), (SystemExit, False)],
)
def test_what_is_kept_is_let_go_unless_interrupted(
    error: Callable[[], BaseException] | None, is_let_go: bool
) -> None:
    frame = Frame()
    with suppress(BaseException), kept(frame):  # type: ignore[arg-type]
        if error is not None:
            raise error()
    assert frame.asked == ["persist", "unpersist"][: 1 + is_let_go]
