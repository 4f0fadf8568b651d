"""The readiness of a backend: whether it takes requests, and why not."""

from dataclasses import dataclass

from frontend.problems import ProblemError, failed, refusal


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a backend takes requests.

    reason: why it takes none, for people.
    failed: the backend has stopped for good; it takes requests only after a new start.
    """

    ready: bool
    reason: str = ""
    failed: bool = False


def unavailable(standing: Readiness) -> ProblemError:
    """Return the problem of a request that comes while the backend is not ready."""
    return failed(standing.reason) if standing.failed else refusal(503, standing.reason)


READY = Readiness(True)
STOPPING = Readiness(False, "stopping")
