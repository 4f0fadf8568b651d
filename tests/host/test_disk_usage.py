"""What a data folder takes on its disk."""

from pathlib import Path

from railgun.host.disk_usage import measure_disk


def test_a_file_that_a_snapshot_links_counts_once(tmp_path: Path) -> None:
    task, snapshot = tmp_path / "task", tmp_path / "snapshots" / "one"
    for folder in (task / "reservoir", task / "state", snapshot / "reservoir"):
        folder.mkdir(parents=True)
    (task / "reservoir" / "0.seg").write_bytes(bytes(1_000))
    (task / "state" / "0.sst").write_bytes(bytes(10))
    (snapshot / "reservoir" / "0.seg").hardlink_to(task / "reservoir" / "0.seg")
    (snapshot / "reservoir" / "last.seg").write_bytes(bytes(100))
    found = measure_disk(tmp_path)
    assert (found.events_bytes, found.state_bytes) == (1_100, 10)
