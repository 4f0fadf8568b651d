"""What a stream whose log is Kafka cannot have yet: older history while it goes on."""

from typing import Any

from frontend.problems import refusal

_SAID = (
    "a stream whose log is Kafka is not deepened while it goes on; give it its history before its log loses its "
    "beginning (railgun backfill --broker), or make a stream anew"
)


class NoDeepening:
    """Refuses."""

    async def begin_deepening(self, stream: str, cut_ms: int | None) -> dict[str, Any]:
        raise refusal(409, _SAID)

    async def install_deepening(self, stream: str) -> dict[str, Any]:
        raise refusal(409, _SAID)

    async def deepening(self, stream: str) -> dict[str, Any]:
        raise refusal(409, _SAID)

    async def give_up_deepening(self, stream: str) -> None:
        raise refusal(409, _SAID)
