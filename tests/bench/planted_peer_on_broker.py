"""Peers on a broker with a known fault: `python -m tests.bench.planted_peer_on_broker FAULT TASK`."""

import json
import sys
import time
from typing import Any

from bench.peers import consumer_deque
from bench.peers.dict_deque import Cards
from bench.peers.protocol import Task, WindowValues, reply

SLOW_S = 0.01


class _Slow(Cards):
    def add(self, event: dict[str, Any]) -> list[WindowValues]:
        time.sleep(SLOW_S)
        return super().add(event)


if __name__ == "__main__":
    fault, text = sys.argv[1:]
    task = Task.of_text(text)
    if fault == "slow":
        consumer_deque.Cards = _Slow  # type: ignore[misc]
    else:
        first = json.loads(task.events.open().readline())["tx_id"]
        consumer_deque.reply = lambda id_, values: reply(first, values)
    consumer_deque.main(task)
