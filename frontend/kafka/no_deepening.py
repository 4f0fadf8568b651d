"""Deepening, where streams' logs are Kafka: between the job and the units, not over HTTP."""

from typing import Any

from frontend.problems import refusal
from railgun.registry.origin import Origin

_SAID = (
    "a stream whose log is Kafka is deepened by its units: railgun backfill --deepen --broker HOST:PORT --data with "
    "the data folder of their node"
)


class NoDeepening:
    """Refuses."""

    async def begin_deepening(self, stream: str, cut_ms: int | None) -> dict[str, Any]:
        raise refusal(409, _SAID)

    async def install_deepening(self, stream: str, origin: Origin) -> dict[str, Any]:
        raise refusal(409, _SAID)

    async def deepening(self, stream: str) -> dict[str, Any]:
        raise refusal(409, _SAID)

    async def give_up_deepening(self, stream: str) -> None:
        raise refusal(409, _SAID)
