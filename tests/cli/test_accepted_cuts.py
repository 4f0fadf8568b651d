"""What `railgun cluster accept-cut` says for each outcome, and that it asks before it does anything."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from frontend.kafka.accepted_losses import Outcome
from railgun.cli import cluster
from railgun.cli.main import main

TEXTS = {
    Outcome.CUT: "s/card/0 goes on from offset 1,200 of its log, without 7 records that had been answered",
    Outcome.BEGUN_ANEW: "s/card/0 begins anew at offset 1,200 of the topic that has the name of its log now, with the "
    "present definitions; the 7 records of the one before are lost",
    Outcome.ACCEPTED_BEFORE: "s/card/0 has nothing more to accept: an earlier order stands",
}
CUT = {"stream": "s", "partitioner": "card", "partition": 0, "offset": 1_200, "records": 7}


@pytest.mark.parametrize("outcome", Outcome)
def test_each_outcome_has_words_of_its_own(outcome: Outcome) -> None:
    assert TEXTS[outcome] in cluster._accepted({**CUT, "outcome": str(outcome)})


class Server:
    def __init__(self) -> None:
        self.ordered = list[tuple[Any, ...]]()

    def accept_cut(self, *task: Any) -> dict[str, Any]:
        self.ordered.append(task)
        return {**CUT, "outcome": "cut"}


@pytest.mark.parametrize(
    ("more", "answer", "is_ordered"),
    [([], "", False), ([], "n\n", False), ([], "y\n", True), (["--yes"], "", True)],
)
def test_it_asks_before_it_orders(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    answer: str,
    is_ordered: bool,
) -> None:
    server = Server()

    @contextmanager
    def ordering_client(_: Any, command: str) -> Iterator[Server]:
        assert command == "cluster accept-cut"
        yield server

    monkeypatch.setattr(cluster, "ordering_client", ordering_client)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert main(["cluster", "accept-cut", "s/card/0", *more]) == (0 if is_ordered else 1)
    assert server.ordered == ([("s", "card", 0)] if is_ordered else [])
    said = capsys.readouterr()
    assert (TEXTS[Outcome.CUT] in said.out) is is_ordered
    assert ("s/card/0: copies that had processed records" in said.err) is (not more)
    assert ("nothing was changed" in said.err) is (not is_ordered)
