"""A unit takes the orders of its node's transfer process, and answers them."""

from pathlib import Path
from typing import cast

from railgun.node.parent import Parent
from railgun.node.relay import MakeSnapshot, Message, Received, SnapshotMade, StopFetch
from railgun.unit.process import _snapshots


class _Parent:
    def __init__(self) -> None:
        self.take, self.sent = lambda received: None, list[tuple[str, Message]]()

    def send(self, to: str, message: Message) -> None:
        self.sent.append((to, message))


def test_an_order_is_answered(tmp_path: Path) -> None:
    parent = _Parent()
    snapshots = _snapshots(tmp_path, cast(Parent, parent))
    parent.take(Received("transfer", StopFetch("payments.0/card/3")))
    parent.take(Received("transfer", MakeSnapshot("payments.0/card/3", "ab")))
    assert parent.sent == []
    snapshots.step({})
    assert parent.sent == [("transfer", SnapshotMade("ab", "payments.0/card/3 has no copy here"))]
