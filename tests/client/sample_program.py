"""A program that uses both clients, as one would write it: it is type-checked, and run against a server."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import railgun

Event = dict[str, Any]


def events(first: int, n: int) -> Iterator[Event]:
    """Payments of one card."""
    for place in range(first, first + n):
        at = datetime(2026, 1, 31, 12, 0, place, tzinfo=UTC)
        yield {"tx_id": f"t{place}", "ts": at, "card": "c1", "merchant": "m1", "amount": 12.5}


async def arriving(first: int, n: int) -> AsyncIterator[Event]:
    """The same, as a source that is awaited gives them."""
    for event in events(first, n):
        await asyncio.sleep(0)
        yield event


def counted(answer: railgun.Reply | railgun.ProblemError) -> int:
    """The card's count in a reply."""
    if isinstance(answer, railgun.ProblemError):
        raise answer
    return int(answer["metrics"]["card_count_7d"])


def blocking(url: str) -> list[int]:
    """Every kind of call, waited for."""
    with railgun.Client(url, token=None, timeout_s=30.0, streams_with_ids=["payments"]) as client:
        reply: railgun.Reply = client.score("payments", next(events(0, 1)), metrics=["card_count_7d"])
        found = [counted(reply)]
        found += [counted(each) for each in client.score_batch("payments", list(events(1, 2)))]
        found += [counted(each) for each in client.score_all("payments", events(3, 3), part_events=2)]
        values: list[railgun.KeyValues] = client.values("payments", [{"card": "c1"}], ["card_count_7d"])
        found.append(values[0]["metrics"]["card_count_7d"])
        try:
            client.score("payments", {"tx_id": None})
        except railgun.ProblemError as error:
            found.append(error.status)
        except railgun.ClientError as error:
            found.append(-1 if error.may_have_counted else 0)
        return found


async def awaited(url: str) -> list[int]:
    """The same calls, awaited."""
    async with railgun.AsyncClient(url) as client:
        reply: railgun.Reply = await client.score("payments", next(events(6, 1)))
        found = [counted(reply)]
        found += [counted(each) for each in await client.score_batch("payments", list(events(7, 2)))]
        found += [counted(each) async for each in client.score_all("payments", arriving(9, 3), part_events=2)]
        values = await client.values("payments", [{"card": "c1"}], ["card_count_7d"])
        found.append(values[0]["metrics"]["card_count_7d"])
        replies = await asyncio.gather(*(client.score("payments", each) for each in events(0, 2)))
        return found + [len(each.get("duplicate", [])) for each in replies]


if __name__ == "__main__":
    print(blocking(sys.argv[1]), asyncio.run(awaited(sys.argv[1])))  # noqa: T201
