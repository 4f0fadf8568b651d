"""The schedule by which requests are due. It is made before the run, so no slow answer can delay it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

REQUESTS_MAX, SECONDS_MAX = 20_000_000, 4 * 3600.0


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a schedule: `requests`, evenly spaced over `seconds`; all at once if that is 0."""

    requests: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """Phases, one after another. Raises ValueError beyond REQUESTS_MAX or SECONDS_MAX: a run is bounded."""

    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        """Check the bounds."""
        if any(phase.requests < 0 or phase.seconds < 0 for phase in self.phases):
            raise ValueError("a phase has a number of requests and of seconds, neither below 0")
        if self.requests > REQUESTS_MAX or self.seconds > SECONDS_MAX:
            raise ValueError(
                f"{self.requests} requests in {self.seconds} s: at most {REQUESTS_MAX} in {SECONDS_MAX} s"
            )

    @classmethod
    def constant(cls, rate_per_s: float, seconds: float) -> Self:
        """Make a schedule of one rate."""
        return cls.stepped([rate_per_s], seconds)

    @classmethod
    def stepped(cls, rates_per_s: Sequence[float], seconds_each: float) -> Self:
        """Make a schedule of one rate after another, each for the same time."""
        return cls(tuple(Phase(round(rate * seconds_each), seconds_each) for rate in rates_per_s))

    @classmethod
    def burst(cls, requests: int) -> Self:
        """Make a schedule of requests that are all due at once, so they go as fast as connections allow."""
        return cls((Phase(requests, 0.0),))

    @property
    def requests(self) -> int:
        """The number of requests in all phases."""
        return sum(phase.requests for phase in self.phases)

    @property
    def seconds(self) -> float:
        """The seconds of all phases together."""
        return sum(phase.seconds for phase in self.phases)

    def due_ns(self) -> NDArray[np.int64]:
        """Return when each request is due, in ns after the start: int64[requests], not falling."""
        starts_s = np.cumsum([0.0, *(phase.seconds for phase in self.phases)])
        each = [
            start_s + np.arange(phase.requests) * (phase.seconds / max(1, phase.requests))
            for start_s, phase in zip(starts_s, self.phases)
        ]
        due: NDArray[np.int64] = (np.concatenate([np.zeros(0), *each]) * 1e9).astype(np.int64)
        return due

    def phase_of(self) -> NDArray[np.int64]:
        """Return the index of each request's phase: int64[requests]."""
        return np.repeat(np.arange(len(self.phases)), [phase.requests for phase in self.phases])
