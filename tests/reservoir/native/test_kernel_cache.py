"""The cache of compiled kernels: what is long gone is deleted, what other checkouts use is not."""

import os
import time
from pathlib import Path

from reservoir.native.cache import _CACHES_KEPT, _KEPT_S, _make_room


def test_only_old_caches_beyond_the_latest_few_are_deleted(tmp_path: Path) -> None:
    now_s = time.time()
    ages_s = [0, 60, _KEPT_S + 60, _KEPT_S - 600, *(_KEPT_S + 100 * n for n in range(2, 6))]
    for number, age_s in enumerate(ages_s):
        folder = tmp_path / str(number)
        folder.mkdir()
        os.utime(folder, (now_s - age_s, now_s - age_s))
    _make_room(tmp_path / "0")
    assert len(list(tmp_path.iterdir())) == len(ages_s)
    _make_room(tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "3"]
    assert _CACHES_KEPT == 4


def test_the_latest_few_stay_however_old(tmp_path: Path) -> None:
    for number in range(_CACHES_KEPT + 3):
        folder = tmp_path / str(number)
        folder.mkdir()
        os.utime(folder, (number, number))
    _make_room(tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["4", "5", "6"]
