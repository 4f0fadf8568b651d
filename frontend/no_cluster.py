"""A server that scores in its own process is no cluster."""

from typing import Any

from frontend.problems import refusal

_SAID = "this server scores in its own process and has no nodes; `railgun frontend` and `railgun node` make a cluster"


class NoCluster:
    """Refuses."""

    async def cluster(self) -> dict[str, Any]:
        raise refusal(409, _SAID)

    async def what_if(self, change: str) -> dict[str, Any]:
        raise refusal(409, _SAID)

    async def drain(self, node: str, *, fewer_copies: bool) -> dict[str, Any]:
        raise refusal(409, _SAID)

    async def accept_cut(self, stream: str, partitioner: str, partition: int) -> dict[str, Any]:
        raise refusal(409, _SAID)

    async def undrain(self, node: str) -> dict[str, Any]:
        raise refusal(409, _SAID)
