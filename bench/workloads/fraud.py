"""Payments of customers at terminals near them, with three kinds of fraud: large amounts, terminals and customers that
are compromised for a while.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from bench.distributions import Float64Array, Int64Array
from bench.workloads.blocks import DAY_MS, START_MS, batch, rising

_CUSTOMERS, _TERMINALS, _NEAR = 25_000, 50_000, 80
_MEAN_LEAST, _MEAN_MOST, _DAILY_MOST = 5.0, 100.0, 4.0
_NOON_MS, _NOON_SPREAD_MS = DAY_MS / 2, 20_000_000.0
_LARGE = 220.0
_TERMINALS_A_DAY, _TERMINAL_DAYS = 10, 28
_CUSTOMERS_A_DAY, _CUSTOMER_DAYS, _CUSTOMER_SHARE, _CUSTOMER_FACTOR = 15, 14, 1 / 3, 5.0


@dataclass(slots=True)
class _People:
    """Who pays where. means: of a customer's amounts.  daily: payments of a customer in a day.

    first_near: the first of the terminals next to a customer, which are numbered along a line.
    bad_terminals, bad_customers: the day until which each is compromised.
    """

    rng: np.random.Generator
    customers: int
    terminals: int
    means: Float64Array = field(init=False)
    daily: Float64Array = field(init=False)
    first_near: Int64Array = field(init=False)
    bad_terminals: Int64Array = field(init=False)
    bad_customers: Int64Array = field(init=False)

    def __post_init__(self) -> None:
        self.means = self.rng.uniform(_MEAN_LEAST, _MEAN_MOST, self.customers)
        self.daily = self.rng.uniform(0, _DAILY_MOST, self.customers)
        self.first_near = self.rng.integers(self.terminals, size=self.customers)
        self.bad_terminals = np.zeros(self.terminals, np.int64)
        self.bad_customers = np.zeros(self.customers, np.int64)

    def compromise(self, day: int, scale: float) -> None:
        """Choose the terminals and customers that are compromised from this day on."""
        terminals, customers = (max(1, int(n * scale)) for n in (_TERMINALS_A_DAY, _CUSTOMERS_A_DAY))
        self.bad_terminals[self.rng.integers(self.terminals, size=terminals)] = day + _TERMINAL_DAYS
        self.bad_customers[self.rng.integers(self.customers, size=customers)] = day + _CUSTOMER_DAYS

    def day_of(self, day: int) -> dict[str, Int64Array | Float64Array]:
        """Return the payments of a day in order, with times into the day."""
        rng = self.rng
        who = np.repeat(np.arange(self.customers), rng.poisson(self.daily))
        within_ms = rng.normal(_NOON_MS, _NOON_SPREAD_MS, len(who))
        kept = (within_ms > 0) & (within_ms < DAY_MS)
        order = np.argsort(within_ms[kept], kind="stable")
        who, within_ms = who[kept][order], within_ms[kept][order]
        near = np.minimum(_NEAR, self.terminals)
        where = (self.first_near[who] + rng.integers(near, size=len(who))) % self.terminals
        usual = rng.normal(self.means[who], self.means[who] / 2)
        usual = np.where(usual < 0, rng.uniform(0, 2 * self.means[who]), usual)
        is_theft = (self.bad_customers[who] > day) & (rng.random(len(who)) < _CUSTOMER_SHARE)
        amounts: Float64Array = np.round(usual * np.where(is_theft, _CUSTOMER_FACTOR, 1.0), 2)
        is_fraud = (amounts > _LARGE) | is_theft | (self.bad_terminals[where] > day)
        return {
            "within_ms": within_ms,
            "customer": who,
            "terminal": where,
            "amount": amounts,
            "fraud": is_fraud.astype(np.int64),
        }


def blocks(scale: float, seed: int) -> Iterator[pa.RecordBatch]:
    """Yield payments without an end, a day in each block: at scale 1 about 48,000."""
    people = _People(
        np.random.default_rng(seed), max(10, int(_CUSTOMERS * scale)), max(10, int(_TERMINALS * scale))
    )
    day, first, latest = 0, 0, START_MS - 1
    while True:
        people.compromise(day, scale)
        columns = people.day_of(day)
        times_ms = rising(START_MS + day * DAY_MS + columns.pop("within_ms"), latest)
        yield batch(first, "payment", times_ms, columns)
        day, first, latest = day + 1, first + len(times_ms), int(times_ms[-1]) if len(times_ms) else latest
