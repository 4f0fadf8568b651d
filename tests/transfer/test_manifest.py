"""What a manifest may say, before a byte of a file is fetched."""

from pathlib import Path

import msgspec
import pytest

from railgun.transfer.manifest import (
    ClusterId,
    Manifest,
    ManifestError,
    ManifestFile,
    check_manifest,
    read_manifest,
)
from tests.transfer.made_up import CLUSTER, FORMATS, described, order

_HASH = "0" * 64


def _manifest(*paths: str, cluster: ClusterId = CLUSTER, **other: object) -> Manifest:
    files = [ManifestFile(path, 1, _HASH) for path in paths]
    return Manifest(cluster.catalogue, cluster.topic_prefix, described(**other), files)


@pytest.mark.parametrize(
    "path",
    [
        "../outside",
        "state/../../outside",
        "state/..",
        "/etc/passwd",
        "state//x",
        "state/",
        "state",
        "state/a/b",
        "state/.hidden",
        "state/a\0b",
        "FETCHED",
        "tasks/other",
        "snapshot.json",
    ],
)
def test_no_path_leaves_the_folder_of_a_task(path: str) -> None:
    with pytest.raises(ManifestError, match="that no snapshot has"):
        read_manifest(msgspec.json.encode(_manifest("state/CURRENT", path)))


def test_what_cannot_be_read_is_refused() -> None:
    good = _manifest("state/CURRENT", "reservoir/000000000001.seg", "history/manifest.json")
    assert read_manifest(msgspec.json.encode(good)) == good
    for body in (
        b"{}",
        msgspec.json.encode(msgspec.structs.replace(good, version=2)),
        msgspec.json.encode(_manifest("state/a", "state/a")),
        msgspec.json.encode(msgspec.structs.replace(good, files=[ManifestFile("state/a", -1, _HASH)])),
        msgspec.json.encode(msgspec.structs.replace(good, files=[ManifestFile("state/a", 1, "../x")])),
    ):
        with pytest.raises(ManifestError):
            read_manifest(body)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (_manifest(cluster=ClusterId("other", "railgun")), "of another cluster"),
        (_manifest(cluster=ClusterId("", "other")), "of another cluster"),
        (_manifest(partition=4), "of another task: payments.0/card/4"),
        (_manifest(created=5), "of another task: payments.5/card/3"),
        (_manifest(topic_id="other"), "made of another log"),
        (_manifest(position=99), "it ends at offset 99, and one of offset 100 or later is needed"),
        (
            _manifest(release="2.0", formats={**FORMATS, "values": 3}),
            "release 2.0 made it, and release 1.0 cannot read it .values 3.",
        ),
        (_manifest(formats={"new": 1}), "new 1"),
    ],
)
def test_what_was_not_ordered_is_refused(found: Manifest, why: str) -> None:
    with pytest.raises(ManifestError, match=why):
        check_manifest(found, order(Path("/data")), CLUSTER, "1.0")


@pytest.mark.parametrize(
    "found",
    [
        _manifest(),
        _manifest(position=100),
        _manifest(topic_id=""),
        _manifest(cluster=ClusterId("", "railgun")),
        _manifest(release="0.9", arrow="1", formats={"commit": 1}),
    ],
)
def test_what_is_not_known_and_what_is_older_is_taken(found: Manifest) -> None:
    check_manifest(found, order(Path("/data")), CLUSTER, "1.0")
