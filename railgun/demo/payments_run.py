"""The demo's second part: scores payments with planted fraud, and measures how well the library's metrics find it."""

import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from railgun.catalog.definitions import load_definitions
from railgun.client.client import Client
from railgun.demo.flights import DataMissingError
from railgun.demo.payments import ACCOUNT_TAKEOVER, CARD_TESTING, COMPROMISED_MERCHANT, Payments
from railgun.demo.payments_brute_force import PaymentsBruteForce
from railgun.demo.run import BATCH_EVENTS, Verdict, compare, lines_of, metrics_of, register

STREAM = "payments"
_CONFIG = Path(__file__).parents[2] / "config"
# An installed Railgun has the folder `config` as `share/railgun` of its environment.
_INSTALLED = Path(sysconfig.get_path("data")) / "share" / "railgun"
LIBRARY = (_CONFIG if _CONFIG.is_dir() else _INSTALLED) / "examples" / "payments.toml"


STARTS = {
    "card_payments_10m": "card_payments_10m >= 5",
    "card_amount_1d": "card_amount_1d >= 15.0 * card_usual",
    "device_payments_1h": "device_payments_1h >= 8",
    "bin_payments_10m": "bin_payments_10m >= 10",
    "merchant_times_usual": "merchant_times_usual >= 10.0 AND merchant_payments_1h >= 10",
    "card_devices_30d": "card_devices_30d >= 5",
    "device_cards_7d": "device_cards_7d >= 4",
    "card_countries_1d": "card_countries_1d >= 2",
    "card_first_at_merchant": "card_first_at_merchant AND card_times_usual >= 5.0",
    "card_times_usual": "card_times_usual >= 8.0",
    "card_times_most": "card_times_most >= 3.0",
    "card_idle_s": "card_idle_s < 15.0",
    "card_age_days": "card_age_days < 1.0 AND bin_payments_10m >= 10",
    "card_device_age_h": "card_device_age_h < 24.0 AND card_times_usual >= 3.0",
    "card_night_share_30d": "card_night_share_30d >= 0.6 AND card_habit >= 20",
    "card_unusual_night": "card_unusual_night AND card_times_usual >= 3.0",
    "card_declined_share_1h": "card_declined_share_1h >= 0.5 AND card_tries_1h >= 4",
    "merchant_declined_share_1h": "merchant_declined_share_1h >= 0.4 AND merchant_payments_1h >= 10",
    "merchant_bin_tests_10m": "merchant_bin_tests_10m >= 5",
    "merchant_round_share_1d": "merchant_round_share_1d >= 0.8 AND merchant_payments_1d >= 20",
}
"""The conditions from which on the library's metrics are worth a look, as docs/metric-library.md has them, by metric.

The demo registers each as a derived metric, `start_` and the metric's name, so that consoles show which hold.
"""
SLOW_EVENTS = 100
"""How many payments are sent slowly if they are to be shown."""
_SLOW_BATCH, _SLOW_S = 5, 0.4
# More than the second in which a server has kept all that it keeps of the fast ones.
_PAUSE_S = 1.1


@dataclass(frozen=True, slots=True)
class Shown:
    """A metric of the library, the pattern of fraud that it is shown for, and the library's threshold."""

    pattern: str
    metric: str
    start: int


SHOWN = (
    Shown(CARD_TESTING, "merchant_bin_tests_10m", 5),
    Shown(ACCOUNT_TAKEOVER, "card_times_usual", 8),
    Shown(COMPROMISED_MERCHANT, "device_cards_7d", 4),
)


@dataclass(frozen=True, slots=True)
class Separation:
    """How well a metric tells a pattern's payments from ordinary ones.

    fraud_median, ordinary_median: the medians of its values that are not null.
    caught, flagged: the shares of the pattern's payments and of the ordinary ones that are at or above the threshold.
    """

    shown: Shown
    fraud_median: float
    ordinary_median: float
    caught: float
    flagged: float


def register_library(client: Client) -> int:
    """Register the library's stream and metrics, and its starts. Returns how many metrics without these.

    Raises ClientError, DataMissingError.
    """
    if not LIBRARY.is_file():
        raise DataMissingError(f"{LIBRARY} is missing: install Railgun anew")
    library = load_definitions(LIBRARY)
    register(client, library)
    client.add_metrics(STREAM, starts_query())
    return len(library.metrics) + len(library.derived)


def starts_query() -> str:
    """Return the DERIVE that makes a metric of each of the library's starts."""
    return f"DERIVE {', '.join(f'{start} AS start_{name}' for name, start in STARTS.items())} FROM {STREAM}"


def score(client: Client, events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the metrics of every payment. Raises ClientError, RefusedError."""
    found: list[dict[str, Any]] = []
    for first in range(0, len(events), BATCH_EVENTS):
        batch = events[first : first + BATCH_EVENTS]
        found += metrics_of(client.score_lines(STREAM, lines_of(batch)), len(batch))
    return found


def score_to_show(client: Client, made: Payments) -> list[dict[str, Any]]:
    """Return the metrics of every payment, as `score` does, and have the server keep the last ones that are fraud.

    A server keeps only some of the events of a second, so those up to the last fraud are sent slowly, after a pause.
    """
    begin, end = sent_slowly(made)
    found = score(client, made.events[:begin])
    time.sleep(_PAUSE_S)
    for first in range(begin, end, _SLOW_BATCH):
        found += score(client, made.events[first : min(end, first + _SLOW_BATCH)])
        time.sleep(_SLOW_S)
    return found + score(client, made.events[end:])


def fraud_to_show(made: Payments, found: Sequence[dict[str, Any]]) -> list[str]:
    """Return which payments are fraud among those that are sent slowly, each with the metric of SHOWN that finds it.

    found: the metrics of each payment.
    """
    begin, end = sent_slowly(made)
    shown = []
    for payment, metrics in zip(made.events[begin:end], found[begin:end]):
        if payment["tx_id"] in made.labels:
            finds = [each.metric for each in SHOWN if (metrics[each.metric] or 0) >= each.start]
            shown += [f"{payment['tx_id']} ({name})" for name in finds[:1]]
    return shown


def sent_slowly(made: Payments) -> tuple[int, int]:
    """Return which payments are sent slowly: the last of them is the last fraud."""
    end = max((row + 1 for row, each in enumerate(made.events) if each["tx_id"] in made.labels), default=0)
    return max(0, end - SLOW_EVENTS), end


def separations(made: Payments, found: Sequence[dict[str, Any]]) -> list[Separation]:
    """Return a separation for each metric of SHOWN. found: the metrics of each payment."""
    labels = [made.labels.get(event["tx_id"]) for event in made.events]
    return [_separation(shown, labels, found) for shown in SHOWN]


def _separation(shown: Shown, labels: Sequence[str | None], found: Sequence[dict[str, Any]]) -> Separation:
    fraud = [each[shown.metric] for each, label in zip(found, labels) if label == shown.pattern]
    ordinary = [each[shown.metric] for each, label in zip(found, labels) if label is None]
    return Separation(
        shown,
        fraud_median=median(value for value in fraud if value is not None),
        ordinary_median=median(value for value in ordinary if value is not None),
        caught=_share_from(shown.start, fraud),
        flagged=_share_from(shown.start, ordinary),
    )


def _share_from(start: int, values: Sequence[float | None]) -> float:
    return sum(value is not None and value >= start for value in values) / len(values)


def check_payments(made: Payments, found: Sequence[dict[str, Any]]) -> Verdict:
    """Compute the metrics of SHOWN again for every payment, and compare them."""
    truth = PaymentsBruteForce(made.events)
    return compare(
        (event["tx_id"], truth.results(number), got)
        for number, (event, got) in enumerate(zip(made.events, found))
    )
