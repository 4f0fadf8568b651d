"""The next release of the time zones' package, for tests of what keeps the tables that it had."""

from collections.abc import Callable, Iterator

import pytest

from railgun.language import zones

Release = Callable[[], None]


@pytest.fixture
def next_release(monkeypatch: pytest.MonkeyPatch) -> Iterator[Release]:
    """Has the package's next release come: Lisbon has the clocks of Paris there."""
    read = zones._file

    def change() -> None:
        moved = {"Europe/Lisbon": "Europe/Paris"}
        monkeypatch.setattr(zones, "_file", lambda name: read(moved.get(name, name)))
        zones.pinned_zone.cache_clear()

    zones.pinned_zone.cache_clear()
    yield change
    zones.pinned_zone.cache_clear()
