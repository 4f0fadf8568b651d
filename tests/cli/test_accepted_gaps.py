"""What `railgun cluster accept-gap` says, and that it asks before it does anything."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from railgun.cli import cluster
from railgun.cli.main import main
from railgun.cli.status import as_text

GAP = {
    "stream": "s", "partitioner": "card", "partition": 0, "outcome": "would_cross", "node": "node-2", "first": 1_000,
    "offset": 1_200, "records": 200, "clock_ms": 1_700_000_000_000, "gap_ms": 1_700_000_060_000,
}  # fmt: skip
FROM = (
    "on from offset 1,200 of its log with the state of node-2, without offsets 1,000 to 1,199, whose events are lost: "
    "they may be from any time after 2023-11-14T22:13:20Z until 2023-11-14T22:14:20Z. Metrics are partial as long as "
    "their windows begin at or before 2023-11-14T22:14:20Z"
)


class Server:
    """asked: the orders that came, each with whether it was a question.

    agreed: by the order that was none: what it agrees to.
    """

    def __init__(self, outcome: str) -> None:
        self.outcome, self.asked = outcome, list[tuple[str, bool]]()
        self.agreed: Any = None

    def accept_gap(
        self, *task: Any, node: str = "", agreed: Any = None, dry_run: bool = False
    ) -> dict[str, Any]:
        assert task == ("s", "card", 0)
        self.agreed = agreed
        self.asked.append((node, dry_run))
        outcome = "crossed" if not dry_run and self.outcome == "would_cross" else self.outcome
        return {**GAP, "outcome": outcome}


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        ("crossed", f"s/card/0 goes {FROM}"),
        ("would_cross", f"s/card/0 would go {FROM}"),
        ("accepted_before", "s/card/0 has nothing more to accept: an earlier order about this gap stands"),
    ],
)
def test_each_outcome_has_words_of_its_own(outcome: str, text: str) -> None:
    assert cluster.gap_as_text({**GAP, "outcome": outcome}) == text


def test_a_state_without_events_has_no_time() -> None:
    assert "from any time until" in cluster.gap_as_text({**GAP, "clock_ms": None})


@pytest.mark.parametrize(
    ("outcome", "more", "answer", "orders", "code"),
    [
        ("would_cross", [], "", [("", True)], 1),
        ("would_cross", [], "n\n", [("", True)], 1),
        ("would_cross", ["--from", "node-2"], "y\n", [("node-2", True), ("node-2", False)], 0),
        ("would_cross", ["--yes"], "", [("", False)], 0),
        ("accepted_before", [], "", [("", True), ("", False)], 0),
    ],
)
def test_it_asks_before_it_orders(
    monkeypatch: pytest.MonkeyPatch,
    outcome: str,
    more: list[str],
    answer: str,
    orders: list[tuple[str, bool]],
    code: int,
) -> None:
    server = Server(outcome)

    @contextmanager
    def ordering_client(_: Any, command: str) -> Iterator[Server]:
        assert command == "cluster accept-gap"
        yield server

    monkeypatch.setattr(cluster, "ordering_client", ordering_client)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert main(["cluster", "accept-gap", "s/card/0", *more]) == code
    assert server.asked == orders
    # Only what was shown is agreed to.
    shown = None if "--yes" in more else {**GAP, "outcome": outcome}
    assert server.agreed == (shown if orders[-1][1] is False else None)


def test_the_status_names_a_task_with_a_gap() -> None:
    task = {
        "partitioner": "card",
        "partition": 0,
        "position": 1,
        "checkpoint": 0,
        "log_start": 0,
        "clock_ms": None,
    }
    stream = {
        "name": "s",
        "metrics": [],
        "tasks": [{**task, "gap_ms": 1_700_000_000_000}, {**task, "gap_ms": None}],
    }
    text = as_text({"streams": [stream]})
    assert text.count("lacks events of a gap in its log") == 1
    assert (
        "card-0 lacks events of a gap in its log: windows that begin at or before 2023-11-14T22:13:20" in text
    )
