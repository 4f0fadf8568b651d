"""The plan of a deepening (older history for a live stream) as a file in its folder.

An engine, or Spark's job for a cluster, writes it. Another process builds by it, also after restarts.
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from railgun.catalog.changes import AddMetric, change_from_json, change_to_json
from railgun.catalog.stream_reading import stream_from_record, stream_to_json
from railgun.history.accepted_events import OwnEvents
from railgun.history.build import HistoryPlan
from railgun.history.durable_files import write_whole
from railgun.task.errors import HistoryDamagedError

PLAN, OWN, OWN_FILE = "deepening.json", "own", "own.json"
VERSION = 1
# No stream can have a name that begins so.
_DOOMED = ".doomed-"


def deepening_folder(data: Path, stream: str) -> Path:
    """Return the folder in a data folder where a deepening of a stream is prepared."""
    return data / "backfill" / stream


def doomed_folder(data: Path, randomness: Callable[[int], bytes]) -> Path:
    """Return a new name for a folder that is about to be deleted. randomness: returns that many random bytes."""
    return data / "backfill" / f"{_DOOMED}{randomness(16).hex()}"


def remove_doomed(data: Path) -> None:
    """Delete the folders that were about to be deleted before a restart."""
    for path in (data / "backfill").glob(f"{_DOOMED}*"):
        shutil.rmtree(path, ignore_errors=True)


def history_of(file: Path) -> str | None:
    """Return the id of the history that a plan, or an export of accepted events, is for; None if there is no such
    file.
    """
    found = _body(file).get("history")
    return None if found is None else str(found)


def write_own(folder: Path, history: str, own: OwnEvents) -> None:
    """Write what a task had accepted. The file shows that the export is complete. Raises OSError."""
    body = {"history": history, "own": msgspec.to_builtins(own)}
    write_whole(folder / OWN_FILE, msgspec.json.encode(body).decode() + "\n")


def read_own(folder: Path, history: str) -> OwnEvents | None:
    """Read what a task had accepted; None if the export is not complete, or is for another history.
    Raises OSError.
    """
    body = _body(folder / OWN_FILE)
    return msgspec.convert(body["own"], OwnEvents) if body.get("history") == history else None


def write_plan(folder: Path, plan: HistoryPlan) -> None:
    """Write a plan durably. With it the deepening has begun. Raises OSError."""
    body = {
        "version": VERSION,
        "history": plan.history,
        "key": plan.key.hex(),
        "created": plan.created,
        "schemas": {str(version): stream_to_json(each) for version, each in plan.schemas.items()},
        "metrics": [change_to_json(each) for each in plan.metrics],
        "last_place": plan.last_place,
        "cut_ms": plan.cut_ms,
        "chunk_events": plan.chunk_events,
        "segment_bytes": plan.segment_bytes,
        "own": [[*task, msgspec.to_builtins(own)] for task, own in plan.own.items()],
    }
    write_whole(folder / PLAN, msgspec.json.format(msgspec.json.encode(body), indent=1).decode() + "\n")


def read_plan(folder: Path) -> HistoryPlan | None:
    """Read a plan; None if no deepening has begun there. Raises HistoryDamagedError, OSError."""
    try:
        text = (folder / PLAN).read_bytes()
    except FileNotFoundError:
        return None
    try:
        return _plan(folder, msgspec.json.decode(text))
    except (msgspec.MsgspecError, KeyError, ValueError, TypeError) as error:
        raise HistoryDamagedError(
            str(folder / PLAN),
            f"it cannot be read ({error}); give the deepening up (railgun backfill --deepen --give-up), or remove "
            f"{folder} while nothing runs on it; then begin it again",
        ) from error


def _body(file: Path) -> dict[str, Any]:
    """Return what a file holds; an empty dict if it is missing or cannot be read."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError, ValueError):
        return {}


def _plan(folder: Path, body: Mapping[str, Any]) -> HistoryPlan:
    if body["version"] > VERSION:
        raise ValueError(f"it has version {body['version']}, this program reads up to {VERSION}")
    schemas = {int(version): stream_from_record(each) for version, each in body["schemas"].items()}
    stream = schemas[max(schemas)]
    metrics = [change_from_json(each, {stream.name: stream}) for each in body["metrics"]]
    return HistoryPlan(
        history=body["history"],
        key=bytes.fromhex(body["key"]),
        created=body["created"],
        schemas=schemas,
        metrics=[each for each in metrics if isinstance(each, AddMetric)],
        last_place=body["last_place"],
        cut_ms=body["cut_ms"],
        chunk_events=body["chunk_events"],
        segment_bytes=body["segment_bytes"],
        own={(name, number): msgspec.convert(own, OwnEvents) for name, number, own in body["own"]},
        own_folder=folder / OWN,
    )
