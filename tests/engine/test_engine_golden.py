"""Data folders that earlier releases wrote: log, catalogue, events and state go on as if nothing had happened."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rocksdict import Rdict

import railgun
from railgun.catalog.version import CATALOG_VERSION
from railgun.engine.errors import EngineStoppedError, FolderVersionError
from railgun.engine.folder import VERSION
from railgun.messaging.block import make_blocks
from railgun.messaging.embedded.database import VERSION_KEY, block_key
from railgun.state import keys
from railgun.state.values import pack_commit, unpack_commit
from railgun.task.checkpoints import join_meta
from railgun.task.recovery import split_meta
from railgun.wire.records import Records
from tests.engine.make_golden import AFTER, GOLDEN, SETTINGS, STORED, _raw, brought_back, events

VERSIONS = sorted(folder.name for folder in GOLDEN.iterdir())
LOG, STATE = Path("log/log"), Path("streams/payments/card/0/state")


def test_the_present_version_has_its_golden_files() -> None:
    assert f"v{VERSION}" in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_golden_folder_goes_on_exactly(version: str, tmp_path: Path) -> None:
    expected = json.loads((GOLDEN / version / "expected.json").read_text(encoding="utf-8"))
    data = brought_back(GOLDEN / version, tmp_path / "data")
    with railgun.Engine(data, settings=SETTINGS) as engine:
        assert [stream.name for stream in engine.streams()] == ["payments"]
        assert len(engine.metrics("payments")) == 15
        assert [engine.score("payments", event) for event in events(STORED, AFTER)] == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_a_golden_log_alone_gives_the_same(version: str, tmp_path: Path) -> None:
    """Without the tasks' folders everything is computed again from the golden records, which were never trimmed."""
    expected = json.loads((GOLDEN / version / "expected.json").read_text(encoding="utf-8"))
    data = brought_back(GOLDEN / version, tmp_path / "data")
    log = json.loads((GOLDEN / version / "log/log.json").read_text(encoding="utf-8"))
    if any(key.startswith(b"s".hex()) for key in log):
        pytest.skip("its log was trimmed")
    for path in (data / "streams").rglob("*"):
        if path.is_file():
            path.unlink()
    with railgun.Engine(data, settings=SETTINGS) as engine:
        assert [engine.score("payments", event) for event in events(STORED, AFTER)] == expected


def newer_log(database: Rdict) -> None:
    database[VERSION_KEY] = (2).to_bytes(4, "big")


def newer_commit(database: Rdict) -> None:
    database[keys.META] = b"\2\0" + database[keys.META][2:]


def newer_meta(database: Rdict) -> None:
    epoch, body = unpack_commit(Path(), database[keys.META])
    meta, length = split_meta(body)
    fields = msgspec.msgpack.decode(meta)
    fields[0] += 2  # the next version has gaps, and is read
    database[keys.META] = pack_commit(epoch, join_meta(msgspec.msgpack.encode(fields)) + length)


def newer_row(database: Rdict) -> None:
    key = next(key for key in database.keys() if key.startswith(keys.ROW))  # noqa: SIM118 - no mapping
    database[key] = database[key][:4] + b"\x7f" + database[key][5:]


def newer_entry(database: Rdict) -> None:
    """The catalogue's topic is the first that a log has."""
    entry = msgspec.json.encode({"version": CATALOG_VERSION + 1, "done": 99})
    (_, block), *_ = make_blocks([Records.of([entry])])
    last = max(key for key in database.keys() if key.startswith(block_key(1, 0, 0)[:9]))  # noqa: SIM118
    end = int.from_bytes(last[9:], "big") + int.from_bytes(database[last][4:8], "little")
    database[block_key(1, 0, end)] = block


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (LOG, newer_log),
        (LOG, newer_entry),
        (STATE, newer_commit),
        (STATE, newer_meta),
        (STATE, newer_row),
    ],
)
def test_what_a_newer_version_wrote_is_refused(
    place: Path, change: Callable[[Rdict], None], tmp_path: Path
) -> None:
    data = brought_back(GOLDEN / f"v{VERSION}", tmp_path / "data")
    database = Rdict(str(data / place), _raw())
    change(database)
    database.close()
    with pytest.raises((FolderVersionError, EngineStoppedError)) as refused:
        scored(data)
    found: BaseException | None = refused.value
    if isinstance(found, EngineStoppedError):
        # Work in the background came upon it before the call did.
        found = found.__cause__
    assert isinstance(found, FolderVersionError)
    assert re.search("newer|another|this program reads", str(found).replace(str(data), ""))


def scored(data: Path) -> None:
    with railgun.Engine(data, settings=SETTINGS) as engine:
        for event in events(STORED, AFTER):
            engine.score("payments", event)
