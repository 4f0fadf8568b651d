"""Remembers the leader epochs of the newest records of a log. `TaskHost` has one for its log."""

# Leaders of a partition change rarely, and only the records of the last seconds are asked for.
_KEPT = 16


class LeaderEpochs:
    """Notes the leader epochs of a log's records, from the present position of reading on. One thread uses it."""

    def __init__(self, position: int, epoch: int) -> None:
        # (first offset, epoch), ascending.
        self._since = [(position - 1, epoch)]

    def note(self, first_offset: int, epoch: int) -> None:
        """Note the epoch of the records from an offset on, which is not before those that were noted already."""
        if epoch != self._since[-1][1]:
            self._since = [*self._since[1 - _KEPT :], (first_offset, epoch)]

    def before(self, offset: int) -> int:
        """Return the epoch of the record before an offset; -1 if it is not known."""
        return next((epoch for first, epoch in reversed(self._since) if first < offset), -1)
