"""Computes three metrics of the payment library a second time, in plain Python. It shares nothing with the engine.

A mean is computed in whole cents. A double appears only in the last division, as in the language.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from railgun.demo.brute_force import DAY_MS, Groups, Result

Payment = dict[str, Any]

MINUTE_MS = 60_000
_SMALL_CENTS = 200
_MEAN_DIGITS = Decimal("0.000001")
"""The last digit of an average of amounts, which has four digits more than the amounts."""


class PaymentsBruteForce:
    """Computes results for single payments of `events`, which are in order of time."""

    def __init__(self, events: Sequence[Payment]) -> None:
        self._events = events
        times = [event["ts"] for event in events]
        self._by_card = Groups(events, times, lambda event: event["card"])
        self._by_device = Groups(events, times, lambda event: event["device"])
        self._by_merchant_and_bin = Groups(events, times, lambda event: (event["merchant"], event["bin"]))

    def results(self, number: int) -> dict[str, Result]:
        """Return the metrics that the demo shows, with their values in the reply to a payment."""
        event = self._events[number]
        now, device = event["ts"], event["device"]
        last_10m = self._by_merchant_and_bin.rows(number, now - 10 * MINUTE_MS, now)
        last_7d = self._by_device.rows(number, now - 7 * DAY_MS, now)
        # The payment itself is the last of its group.
        before = self._by_card.rows(number, now - 30 * DAY_MS, now)[:-1]
        usual = _mean([_cents(each) for each in before if not each["declined"]])
        return {
            "merchant_bin_tests_10m": sum(_cents(each) <= _SMALL_CENTS for each in last_10m),
            "card_times_usual": None if usual is None else float(event["amount"]) / float(usual),
            "device_cards_7d": None if device is None else len({each["card"] for each in last_7d}),
        }


def _cents(event: Payment) -> int:
    return int(event["amount"].replace(".", ""))


def _mean(cents: Sequence[int]) -> Decimal | None:
    """Return a mean in the currency's unit, to six digits, rounded half away from zero."""
    if not cents:
        return None
    with localcontext(prec=50):
        return (Decimal(sum(cents)) / (100 * len(cents))).quantize(_MEAN_DIGITS, ROUND_HALF_UP)
