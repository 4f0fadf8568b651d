"""A store in memory that is strict: it refuses whatever breaks the contract of images, epochs and undo."""

from collections.abc import Sequence

from railgun.state.resident import Image


class MemoryItems:
    """Items by key, what uncommitted epochs overwrote, and the last commit. `crash` goes back to it."""

    def __init__(self) -> None:
        self.values: dict[bytes, tuple[int, bytes | None]] = {}
        self.committed = 0
        self.meta: bytes | None = None
        self.writes = 0
        self._undo: dict[int, dict[bytes, tuple[int, bytes | None] | None]] = {}

    def get(self, wanted: list[bytes]) -> list[tuple[int, bytes | None]]:
        return [self.values.get(key, (0, None)) for key in wanted]

    def write(self, images: Sequence[Image]) -> None:
        assert len({key for key, *_ in images}) == len(images), "two images of one key in one write"
        for key, body, epoch, stored in images:
            old = self.values.get(key)
            assert epoch > self.committed, f"{key.hex()}: image of committed epoch {epoch}"
            assert epoch >= stored, f"{key.hex()}: image of epoch {epoch} over {stored}"
            if old is None:
                assert stored <= self.committed, f"{key.hex()}: said to be stored in {stored}, is not there"
            else:
                assert old[0] == stored, f"{key.hex()}: said to be stored in {stored}, is in {old[0]}"
            if stored != epoch:
                overwritten = self._undo.setdefault(epoch, {})
                assert key not in overwritten
                overwritten[key] = old
            self.values[key] = (epoch, body)
            self.writes += 1

    def commit(self, epoch: int, meta: bytes) -> None:
        assert epoch == self.committed + 1
        self.committed, self.meta = epoch, meta
        self._undo.pop(epoch, None)
        self.values = {k: v for k, v in self.values.items() if v[1] is not None or v[0] > epoch}

    def crash(self) -> None:
        """What recovery makes of a crash: the state of the last commit."""
        for epoch in sorted(self._undo, reverse=True):
            for key, old in self._undo[epoch].items():
                if old is None:
                    del self.values[key]
                else:
                    self.values[key] = old
        self._undo.clear()

    def bodies(self, letter: bytes) -> dict[int, bytes]:
        """Stored bodies by lower word of the id, tombstones left out."""
        return {
            int.from_bytes(key[9:], "big"): body
            for key, (_, body) in self.values.items()
            if key.startswith(letter) and body is not None
        }
