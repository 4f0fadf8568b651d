"""Files of histories and deepenings: what one version leaves in a data folder, the next one goes on with."""

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec

from railgun.catalog.changes import AddMetric, PutStream
from railgun.history.accepted_events import ROWS, SEGMENTS, OwnEvents
from railgun.history.build import HistoryPlan
from railgun.history.manifest import (
    MANIFEST_PLACE,
    HistoryManifest,
    read_manifest,
    ready_folder,
    write_manifest,
)
from railgun.history.open_records import TAIL
from railgun.history.plan_file import (
    OWN,
    OWN_FILE,
    PLAN,
    deepening_folder,
    read_own,
    read_plan,
    write_own,
    write_plan,
)
from railgun.history.request_files import OFFER, REQUEST, DeepeningRequest, read_request, write_request
from railgun.history.task_folder import POINTER, beside, move_to
from railgun.host.place import task_folder
from tests.golden.promises import EXPECTED, held, held_bytes
from tests.golden.stream import CUT_MS, HISTORY, changes

OWN_EVENTS = OwnEvents(
    position=100,
    held_ms=CUT_MS - 9,
    least_ms=CUT_MS - 8,
    clock_ms=CUT_MS + 7,
    floor_ms=CUT_MS + 5,
    chunks=3,
    inputs=msgspec.msgpack.encode({"5": [1, 2]}),
    rows_crc32=123_456,
    has_bounds=False,
)
NO_EVENTS = OwnEvents(position=4, held_ms=None, least_ms=None, clock_ms=None, floor_ms=0, chunks=0)
MANIFEST = HistoryManifest(
    history=HISTORY,
    created=1,
    stream="payments",
    partitioner="card",
    partition=2,
    cut_ms=CUT_MS,
    events=1_000,
    duplicates=10,
    first_ms=CUT_MS - 500,
    last_ms=CUT_MS - 1,
    remembered_ms=CUT_MS - 100,
    position=7,
    known_place=4,
)
EMPTY = HistoryManifest(HISTORY, 1, "payments", "*", 0, CUT_MS, 0, 0, None, None, None)


def plan(folder: Path) -> HistoryPlan:
    """The plan of a deepening of two tasks, one of which has no events."""
    put, _, first, second, *_ = changes()
    assert isinstance(put, PutStream)
    assert isinstance(first, AddMetric)
    assert isinstance(second, AddMetric)
    return HistoryPlan(
        history=HISTORY,
        key=bytes(range(16)),
        created=1,
        schemas={1: put.stream, 2: replace(put.stream, lateness_ms=7_000)},
        metrics=[first, second],
        last_place=4,
        cut_ms=CUT_MS,
        chunk_events=8_192,
        segment_bytes=1 << 26,
        own={("card", 2): OWN_EVENTS, ("*", 0): NO_EVENTS},
        own_folder=folder / OWN,
    )


def test_manifests(tmp_path: Path) -> None:
    for name, manifest in (("manifest.json", MANIFEST), ("manifest_empty.json", EMPTY)):
        folder = tmp_path / name
        (folder / "reservoir").mkdir(parents=True)
        (folder / "reservoir" / "000000000001.seg").write_bytes(b"a segment")
        full = write_manifest(folder, manifest)
        held_bytes(name, (folder / MANIFEST_PLACE).read_bytes())
        shutil.copyfile(EXPECTED / name, folder / MANIFEST_PLACE)
        assert read_manifest(folder) == full
        assert full.files


def test_the_plan_of_a_deepening(tmp_path: Path) -> None:
    write_plan(tmp_path, plan(tmp_path))
    held_bytes("deepening.json", (tmp_path / PLAN).read_bytes())
    shutil.copyfile(EXPECTED / "deepening.json", tmp_path / PLAN)
    assert read_plan(tmp_path) == plan(tmp_path)


def test_what_a_task_had_accepted(tmp_path: Path) -> None:
    write_own(tmp_path, HISTORY, OWN_EVENTS)
    held_bytes("own.json", (tmp_path / OWN_FILE).read_bytes())
    shutil.copyfile(EXPECTED / "own.json", tmp_path / OWN_FILE)
    assert read_own(tmp_path, HISTORY) == OWN_EVENTS


def test_what_a_job_asks_of_units(tmp_path: Path) -> None:
    request, offer = DeepeningRequest(HISTORY, 1), DeepeningRequest(HISTORY, 1, "3")
    for name, asked in ((REQUEST, request), (OFFER, offer)):
        write_request(tmp_path / name, asked)
    held_bytes("request.json", (tmp_path / REQUEST).read_bytes())
    held_bytes("offer.json", (tmp_path / OFFER).read_bytes())
    assert read_request(EXPECTED / "request.json") == request
    assert read_request(EXPECTED / "offer.json") == offer


def test_where_files_are(tmp_path: Path) -> None:
    place = task_folder(Path("data"), "payments", 1, "card", 2)
    (tmp_path / HISTORY).mkdir()
    move_to(tmp_path, HISTORY)
    held(
        "places.json",
        {
            "a task of a node": str(place),
            "the task of all": str(task_folder(Path("data"), "payments", 1, "*", 0)),
            "a deepened task": str(beside(place, HISTORY)),
            "which folder it is in": [POINTER, (tmp_path / POINTER).read_text()],
            "a deepening": str(deepening_folder(Path("data"), "payments")),
            "its plan": PLAN,
            "its request": REQUEST,
            "its offer": OFFER,
            "what tasks had": [OWN, OWN_FILE, SEGMENTS, ROWS],
            "tasks that are ready": str(ready_folder(Path("data"), "payments")),
            "of a history": [MANIFEST_PLACE, TAIL],
        },
    )
