"""Dead letters, and the route of them as a test plays it."""

from typing import Any

from playwright.sync_api import Route


def bytes_of(text: str | None, *, size: int | None = None, base64: str | None = None) -> dict[str, Any]:
    length = len((text or base64 or "").encode()) if size is None else size
    return {"bytes": length, "cut": size is not None, "text": text, "base64": base64}


def letter(
    offset: int, reason: str | None = "a: the string 'x' is not a long", **more: Any
) -> dict[str, Any]:
    own = {"topic": "prod.dead", "partition": 0, "offset": offset, "time_ms": 1_700_000_000_000 + offset}
    record = {"topic": "prod.in", "partition": 3, "offset": 90_125 + offset}
    headers = [{"name": "reason", "value": None if reason is None else bytes_of(reason)}]
    return {
        **own,
        "kind": "refused",
        "reason": reason,
        "late": None,
        "record": record,
        "key": None,
        "value": bytes_of('{"a": "x"}'),
        "headers": headers,
        **more,
    }


class Answers:
    """Plays the route: a part of `letters` for each request, the newest first."""

    def __init__(self, letters: list[dict[str, Any]], parts: int = 1_000, **more: Any) -> None:
        self.letters, self.parts, self.more = letters, parts, more
        self.asked: list[str] = []

    def __call__(self, route: Route) -> None:
        query = route.request.url.partition("?")[2]
        self.asked.append(query)
        given = dict(each.split("=") for each in query.split("&"))
        first = int(given.get("before", 0))
        last = first + min(self.parts, int(given["limit"]))
        part, is_left = self.letters[first:last], last < len(self.letters)
        answer = {"topics": ["prod.dead"], "letters": part, "read": len(part), "masked": False, **self.more}
        stopped = {"stopped": "limit" if is_left else None, "before": str(last) if is_left else None}
        route.fulfill(json=answer | stopped)
