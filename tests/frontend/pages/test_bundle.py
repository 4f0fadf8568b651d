"""`GET /v1/support`: one file that says how a server stands, within bounds, and nothing of any event."""

import asyncio
import io
import json
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import railgun
from frontend.http.bundle_parts import CHANGES
from frontend.pages.support import archive as making
from frontend.pages.support.archive import Part, archive
from frontend.problems import refusal
from railgun.access.guard import ANONYMOUS, Caller
from railgun.client.client import Client
from tests.frontend.access.callers import FOREIGN, bearer, guarded
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import server

CARD = "card-of-somebody-4711"
FILES = {
    *("about.json", "settings.json", "status.json", "streams.json", "live.json", "metrics.txt"),
    "changes.json",
}
ANYBODY = ANONYMOUS


def files_of(content: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(content)) as found:
        assert found.testzip() is None
        texts = {name: found.read(name).decode() for name in found.namelist()}
    return {name: json.loads(text) if name.endswith(".json") else text for name, text in texts.items()}


def test_what_is_in_it(tmp_path: Path) -> None:
    with server(tmp_path / "data") as running:
        running.define(PAYMENTS)
        running.score("payments", {"tx_id": "a", "ts": 1_700_000_000_000, "card": CARD, "amount": 1.0})
        answer = running.client.get("/v1/support")
        with Client(str(running.client.base_url)) as client:
            same = client.bundle()
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"].startswith('attachment; filename="railgun-')
    files = files_of(answer.content)
    assert set(files) == FILES == set(files_of(same))
    about = files["about.json"]
    assert about["left_out"] == {}
    assert about["release"] == railgun.__version__ == files["live.json"]["process"]["release"]
    assert {"numpy", "msgspec"} <= set(about["packages"])
    assert files["settings.json"]["engine"]["durability"] == "fsync"
    [stream] = files["streams.json"]
    assert (stream["name"], stream["metrics"][0]["name"]) == ("payments", "n7")
    assert files["status.json"]["streams"][0]["name"] == "payments"
    assert 'railgun_events_total{stream="payments"} 1.0' in files["metrics.txt"]
    assert {each["kind"] for each in files["changes.json"]} == {"stream", "add"}
    assert CARD not in str(files)


def test_who_gets_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `operate` nothing; with it the four files of all streams, and of the others what the token may read."""
    with guarded(tmp_path / "data", monkeypatch) as running:

        def asked(name: str) -> httpx.Response:
            return running.client.get("/v1/support", headers={"Authorization": bearer(name)})

        async def overview() -> dict[str, Any]:
            return nodes

        # A stand-in's, as this server has none.
        nodes = {"nodes": [], "tasks": [{"stream": FOREIGN}]}
        monkeypatch.setattr(running.backend.cluster, "overview", overview)
        running.score(FOREIGN, {"secret_field": "x"})
        for name, own in (
            ("operate", set[str]()),
            ("remove-own", {"payments"}),
            ("all", {"payments", FOREIGN}),
        ):
            files = files_of(asked(name).content)
            assert {each["name"] for each in files["streams.json"]} == own
            assert {each["name"] for each in files["live.json"]["streams"]} == own
            assert {each["name"] for each in files["status.json"]["streams"]} == {"payments", FOREIGN}
            assert {each["stream"] for each in files["changes.json"]} == {"payments", FOREIGN}
            assert files["cluster.json"] == nodes
            assert f'stream="{FOREIGN}"' in files["metrics.txt"]
            told = str([files["streams.json"], files["live.json"]])
            assert (FOREIGN in told) == (FOREIGN in own)
        for name in ("metrics", "read-own", "read-all", "define-all"):
            refused = asked(name)
            assert refused.status_code == 403
            assert "operate" in refused.json()["detail"]
            assert FOREIGN not in refused.text


def test_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    with server(tmp_path / "data") as running:
        status = running.backend.catalogue.status

        async def asks_again() -> dict[str, Any]:
            again = await asyncio.to_thread(running.client.get, "/v1/support")
            asked.append(again.status_code)
            assert again.headers["retry-after"] == "1"
            return await status()

        monkeypatch.setattr(running.backend.catalogue, "status", asks_again)
        assert running.client.get("/v1/support").status_code == 200
        monkeypatch.undo()
        assert running.client.get("/v1/support").status_code == 200
    assert asked == [429]


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (refusal(503, "the broker is away"), "the broker is away"),
        (RuntimeError("nobody expected this"), "a defect of this program"),
        (None, "it was not there within 0.05 s"),
        (b"x" * 101, "it has 101 bytes; a bundle takes 100 of one file"),
    ],
)
def test_what_is_not_there_is_named(
    failure: Exception | bytes | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "PART_S", 0.05)
    monkeypatch.setattr(making, "PART_BYTES", 100)

    async def fails(caller: Caller) -> bytes:
        if failure is None:
            await asyncio.sleep(60)
        if isinstance(failure, bytes):
            return failure
        assert isinstance(failure, Exception)
        raise failure

    parts = [Part("good.txt", _always(b"good")), Part("bad.txt", fails), Part("none.txt", _always(None))]
    files = files_of(asyncio.run(archive(parts, {"release": "1"}, ANYBODY)))
    assert set(files) == {"about.json", "good.txt"}
    assert files["about.json"]["release"] == "1"
    assert list(files["about.json"]["left_out"]) == ["bad.txt"]
    assert said in files["about.json"]["left_out"]["bad.txt"]
    assert "nobody expected" not in str(files)


def _always(content: bytes | None) -> Callable[[Caller], Awaitable[bytes | None]]:
    async def make(caller: Caller) -> bytes | None:
        return content

    return make


def test_the_newest_changes_are_in_it(tmp_path: Path) -> None:
    asked = list[tuple[int, int | None]]()
    with server(tmp_path / "data") as running:

        async def noted(limit: int, before: int | None) -> list[Any]:
            asked.append((limit, before))
            return []

        running.backend.catalogue.change_log = noted  # type: ignore[method-assign]
        running.client.get("/v1/support")
    assert asked == [(CHANGES, None)]
