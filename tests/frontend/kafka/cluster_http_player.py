"""A stream of a cluster on Kafka behind HTTP, as the oracle's steps see it."""

import weakref

import httpx

from railgun.config.settings import InputSettings
from tests.frontend.http_player import HttpRequests
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd
from tests.frontend.serving import until

_NO_CLOCK_MS = 2**63
UNITS, FRONT_ENDS = 2, 2


class ClusterHttpPlayer(HttpRequests):
    """Plays steps on `stream` of a cluster, by its front-ends in turns; restarts are of its units.

    cluster: nothing of it runs yet; it is closed with this.
    """

    def __init__(
        self,
        cluster: LocalCluster,
        stream: str,
        intake: InputSettings | None = None,
        front_ends: int = FRONT_ENDS,
    ) -> None:
        super().__init__(stream)
        self._requests = 0
        self._front_ends: list[RunningFrontEnd] = []
        self._cluster = cluster
        # FastAPI keeps what an application's routes refer to while the process lives. Clients of Kafka must not be
        # among it: a process can have a thousand.
        itself = weakref.proxy(self)
        try:
            self._cluster.start_units(UNITS)
            self._front_ends += [
                self._cluster.serve(intake=intake, now_ms=lambda: itself._now_ms()) for _ in range(front_ends)
            ]
        except BaseException:
            self.close()
            raise

    @property
    def client(self) -> httpx.Client:
        """The next one's, once it knows what the others do: changes reach front-ends one after another."""
        until(lambda: len({each.backend.place for each in self._front_ends}) == 1)
        self._requests += 1
        return self._front_ends[self._requests % len(self._front_ends)].client

    def add_metrics(self, sql: str, *, warm: bool = True) -> object:
        assert warm, "units write `warm` when it is due"
        made = self._pending("POST", f"{self.place}/metrics", {"sql": sql})["metrics"]
        self._wait_until_warm()
        return made

    def warm(self, name: str) -> None:
        raise AssertionError("units write `warm` when it is due")

    def restart(self, *, crash: bool) -> None:
        """Units end and begin anew on the same data; after a crash without the checkpoint that stopping takes."""
        self._cluster.stop_units(checkpoint=not crash)
        self._cluster.start_units(UNITS)

    def close(self) -> None:
        self._cluster.close()

    def _now_ms(self) -> int:
        return _NO_CLOCK_MS if self.clock_ms is None else self.clock_ms
