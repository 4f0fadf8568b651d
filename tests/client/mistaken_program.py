"""Mistakes that a type checker finds in a program: each line with a comment has one, of the kind that it names."""

from typing import Any

import railgun

client = railgun.Client("http://127.0.0.1:8080", tokn="t")  # call-arg
reply = client.score("payments")  # call-arg
client.score(1, {"tx_id": "t1"})  # arg-type
client.score("payments", {"tx_id": "t1"}, on_timeout="never")  # arg-type
client.score_batch("payments", {"tx_id": "t1"})  # arg-type
client.scored()  # attr-defined
ready: str = client.is_ready()  # assignment
metric = reply["metric"]  # misc
event: dict[str, Any] = {}
for answer in client.score_all("payments", [event]):
    metric = answer["metrics"]  # index


async def awaited(asynchronous: railgun.AsyncClient) -> None:
    """Forgets to wait."""
    reply: railgun.Reply = asynchronous.score("payments", event)  # assignment
    assert reply
    async for each in asynchronous.score_all("payments", [event]):
        assert each.status  # union-attr
