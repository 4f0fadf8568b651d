"""What a node says of itself: where it serves snapshots, as its transfer process has told last."""

from pathlib import Path

from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.definitions import parse_definitions
from railgun.config.settings import ClusterSettings
from railgun.host.place import task_folder
from railgun.node.identity import Identity
from railgun.node.leader.ended_units import EndedUnits
from railgun.node.leader.process import LeaderPlace, _Known
from railgun.node.relay import Serving


def test_a_record_says_where_the_node_serves_snapshots(tmp_path: Path) -> None:
    place = LeaderPlace(tmp_path, Identity("a", "f"), 1, "1", 1)
    serving = Serving()
    known = _Known(place, ClusterSettings(), 1, lambda: serving, EndedUnits())
    before = known.record()
    assert (before.transfer, before.transfer_key, before.transfer_reason) == ("", "", "")
    serving = Serving("http://a:1", "00ff")
    assert (known.record().transfer, known.record().transfer_key) == ("http://a:1", "00ff")
    serving = Serving(reason="no certificate")
    assert (known.record().transfer, known.record().transfer_reason) == ("", "no certificate")


def test_a_record_says_of_which_tasks_the_node_may_have_a_checkpoint(tmp_path: Path) -> None:
    catalog = Catalog()
    definitions = parse_definitions(
        '[streams.s]\npartitioners = ["k"]\npartitions = 3\n[streams.s.fields]\nk = "long"'
    )
    for change in missing_changes(catalog, definitions)[0]:
        catalog.apply(change)
    for key in list(catalog.task_keys)[:2]:
        state = task_folder(tmp_path, *key) / "state"
        state.mkdir(parents=True)
        (state / "end.mark").write_bytes(bytes([key.partition]) * 1_024)
    place = LeaderPlace(tmp_path, Identity("a", "f"), 1, "1", 1)
    known = _Known(place, ClusterSettings(), 1, Serving, EndedUnits())
    known.catalog = catalog
    assert [(each.partition, each.has_checkpoint) for each in known.record().disk] == [(0, False), (1, True)]
