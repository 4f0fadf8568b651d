"""When requests are due: a plan made before the clock runs, which no slow answer can delay."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

REQUESTS_MAX, SECONDS_MAX = 20_000_000, 4 * 3600.0


@dataclass(frozen=True, slots=True)
class Phase:
    """`requests` of them, evenly spaced over `seconds`; all at once where that is 0."""

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
        """One rate throughout."""
        return cls.stepped([rate_per_s], seconds)

    @classmethod
    def stepped(cls, rates_per_s: Sequence[float], seconds_each: float) -> Self:
        """One rate after another, each for as long."""
        return cls(tuple(Phase(round(rate * seconds_each), seconds_each) for rate in rates_per_s))

    @classmethod
    def burst(cls, requests: int) -> Self:
        """All due at once: as fast as connections allow."""
        return cls((Phase(requests, 0.0),))

    @property
    def requests(self) -> int:
        """How many, in all phases."""
        return sum(phase.requests for phase in self.phases)

    @property
    def seconds(self) -> float:
        """How long, in all phases."""
        return sum(phase.seconds for phase in self.phases)

    def due_ns(self) -> NDArray[np.int64]:
        """int64[requests], not falling: ns after the start."""
        starts_s = np.cumsum([0.0, *(phase.seconds for phase in self.phases)])
        each = [
            start_s + np.arange(phase.requests) * (phase.seconds / max(1, phase.requests))
            for start_s, phase in zip(starts_s, self.phases)
        ]
        due: NDArray[np.int64] = (np.concatenate([np.zeros(0), *each]) * 1e9).astype(np.int64)
        return due

    def phase_of(self) -> NDArray[np.int64]:
        """int64[requests]: the place of each request's phase."""
        return np.repeat(np.arange(len(self.phases)), [phase.requests for phase in self.phases])
