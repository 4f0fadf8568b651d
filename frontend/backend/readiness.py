"""Whether a backend takes requests."""

from dataclasses import dataclass

from frontend.problems import ProblemError, failed, refusal


@dataclass(frozen=True, slots=True)
class Readiness:
    """ready: events are taken.  reason: why they are not, for people.  failed: the backend stopped, and stays so until
    it is started again."""

    ready: bool
    reason: str = ""
    failed: bool = False


def unavailable(standing: Readiness) -> ProblemError:
    """Return the problem of a request that comes while the backend is not ready."""
    return failed(standing.reason) if standing.failed else refusal(503, standing.reason)


READY = Readiness(True)
STOPPING = Readiness(False, "stopping")
