"""Remembers when the newest records of a task's log were appended. `TaskHost` has one for its log."""

# Times that are closer together are not told apart.
_STEP_MS = 1_000
_KEPT = 64


class AppendTimes:
    """Notes when the records of a log were appended, from the present position of reading on. One thread uses it.

    Times are ms since 1970. They may be too early, by a second as a rule, and never too late.
    """

    def __init__(self) -> None:
        # (first offset, time), ascending, and the end of what was noted.
        self._since: list[tuple[int, int]] = []
        self._end = -1

    def note(self, first_offset: int, end_offset: int, appended_ms: int, needed: int) -> None:
        """Note when the first of the next records was appended.

        end_offset: the offset after the last of these records.
        needed: the caller asks no more for offsets before this one.
        """
        self._end = end_offset
        since = self._since
        if since and appended_ms - since[-1][1] < _STEP_MS:
            return
        since.append((first_offset, appended_ms))
        while len(since) > 1 and since[1][0] <= needed:
            del since[0]
        if len(since) > _KEPT:
            # The first one stays: it may be the only one before `needed`.
            del since[1::2]

    def at(self, offset: int) -> int:
        """Return when the record at an offset was appended; 0 if that is not known, or if it was not read yet."""
        if offset >= self._end:
            return 0
        return next((appended_ms for first, appended_ms in reversed(self._since) if first <= offset), 0)
