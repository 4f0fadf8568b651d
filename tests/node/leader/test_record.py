"""What a node says of itself: where it serves snapshots, as its transfer process has told last."""

from pathlib import Path

from railgun.config.settings import ClusterSettings
from railgun.node.identity import Identity
from railgun.node.leader.process import LeaderPlace, _Known
from railgun.node.relay import Serving


def test_a_record_says_where_the_node_serves_snapshots(tmp_path: Path) -> None:
    place = LeaderPlace(tmp_path, Identity("a", "f"), 1, "1", 1)
    serving = Serving()
    known = _Known(place, ClusterSettings(), 1, lambda: serving)
    before = known.record()
    assert (before.transfer, before.transfer_key, before.transfer_reason) == ("", "", "")
    serving = Serving("http://a:1", "00ff")
    assert (known.record().transfer, known.record().transfer_key) == ("http://a:1", "00ff")
    serving = Serving(reason="no certificate")
    assert (known.record().transfer, known.record().transfer_reason) == ("", "no certificate")
