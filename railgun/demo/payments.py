"""Makes up card payments with three planted patterns of fraud. The same seed gives the same payments.

Events have the fields of config/examples/payments.toml. They do not say which of them are fraud; `Payments.labels`
does, by id.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

CARD_TESTING = "card testing"
ACCOUNT_TAKEOVER = "account takeover"
COMPROMISED_MERCHANT = "compromised merchant"
PATTERNS = (CARD_TESTING, ACCOUNT_TAKEOVER, COMPROMISED_MERCHANT)

CARDS_MIN, DAYS_MIN = 100, 35

_FIRST_DAY = datetime(2025, 3, 1, tzinfo=ZoneInfo("Europe/Lisbon"))
"""The first day of the payments. Clocks are put forward on the 30th day."""
_NIGHT = range(6)
_DAY = range(7, 24)
_DAY_WEIGHTS = (2, 5, 6, 6, 7, 9, 10, 8, 6, 6, 7, 9, 10, 8, 6, 4, 2)
_COUNTRIES = {"PT": 85, "ES": 6, "FR": 4, "GB": 3, "US": 2}
_HOME = "PT"
_CURRENCIES = {"GB": "GBP", "US": "USD"}
_KINDS = (
    # mcc, price beside the card's own level, share of amounts that are whole
    ("5411", 1.0, 0.03),  # groceries
    ("5814", 0.15, 0.10),  # coffee, quick meals
    ("5812", 0.8, 0.10),  # restaurants
    ("5541", 1.3, 0.40),  # fuel
    ("4111", 0.1, 0.05),  # transport
    ("5732", 3.0, 0.15),  # electronics
    ("5651", 1.6, 0.10),  # clothes
    ("8398", 0.4, 0.70),  # charities
)
_ELECTRONICS, _CHARITY = "5732", "8398"


@dataclass(frozen=True, slots=True)
class Payments:
    """Events in the order of their times, and what was planted.

    labels: the pattern of each fraudulent event, by id.
    breached: the merchant whose customers' cards were stolen.
    """

    events: list[dict[str, Any]]
    labels: dict[str, str]
    breached: str


def payments(seed: int = 1, cards: int = 400, days: int = 45) -> Payments:
    """Return a town's payments with three kinds of fraud: card testing, accounts taken over, and a breached web shop.

    Fraud begins in the second half, when habits are known. A card has about 1.2 ordinary payments a day.

    Raises ValueError for fewer than 100 cards or 35 days.
    """
    if cards < CARDS_MIN or days < DAYS_MIN:
        raise ValueError(f"{cards} cards and {days} days; at least {CARDS_MIN} and {DAYS_MIN} are needed")
    town = _Town(Random(seed), cards, days)
    town.live()
    town.try_cards(bursts=12)
    town.take_over(accounts=cards // 8)
    town.breach(stolen=cards // 5)
    made = sorted(town.made, key=lambda each: int(each[0]["ts"]))
    events = [{"tx_id": f"p{number:06d}", **event} for number, (event, _) in enumerate(made)]
    labels = {event["tx_id"]: label for event, (_, label) in zip(events, made) if label}
    return Payments(events, labels, town.shop.name)


@dataclass(frozen=True, slots=True)
class _Merchant:
    name: str
    country: str
    mcc: str
    price: float
    whole_share: float


@dataclass(frozen=True, slots=True)
class _Card:
    """A card and the habits of its holder.

    level: the middle amount of its payments, in cents.
    night_share, online_share: the shares of its payments at night and online.
    devices: pairs of (first day, device).
    abroad: a country, and the days there.
    """

    name: str
    bin: str
    level: float
    per_day: float
    night_share: float
    online_share: float
    favourites: list[_Merchant]
    devices: list[tuple[int, str]] = field(default_factory=list)
    abroad: tuple[str, range] = ("", range(0))


class _Town:
    """Cards, merchants, and the payments made so far, each with its pattern of fraud, "" if it is ordinary."""

    def __init__(self, random: Random, cards: int, days: int) -> None:
        self.made: list[tuple[dict[str, Any], str]] = []
        self.shop = _Merchant("m150", _HOME, "5651", 1.6, 0.1)
        self._random = random
        self._days = days
        self._bins = [f"4{random.randrange(10**5):05d}" for _ in range(12)]
        self._merchants = [self._merchant(i) for i in range(150)]
        self._by_country = {
            name: [each for each in self._merchants if each.country == name]
            for name in {each.country for each in self._merchants}
        }
        self._public_devices = [self._token("d") for _ in range(5)]
        self._popularity = list(accumulate(1 / (i + 5) for i in range(len(self._merchants))))
        self._cards: list[_Card] = []
        for _ in range(cards):
            self._cards.append(self._card())

    def live(self) -> None:
        """Make the ordinary payments. Some are made at a public device; some are declined."""
        random = self._random
        for card in self._cards:
            for day in range(self._days):
                for _ in range(self._count(card.per_day)):
                    is_online = random.random() < card.online_share
                    merchant = self._online(card) if is_online else self._nearby(card, day)
                    hours = _NIGHT if random.random() < card.night_share else _DAY
                    device = self._device(card, day) if is_online else None
                    self._pay(card, merchant, self._moment(day, hours), self._price(card, merchant), device)

    def try_cards(self, bursts: int) -> None:
        """Make bursts of card testing: within minutes a bot tries small amounts at a merchant.

        It tries a stolen card, or numbers of one BIN (the first digits, which name the bank).
        """
        random = self._random
        for burst in range(bursts):
            merchant = random.choice([each for each in self._merchants if each.mcc == _CHARITY])
            start = self._moment(random.randrange(self._days // 2, self._days - 1), range(24))
            stolen = random.choice(self._cards)
            minutes = random.uniform(3, 8)
            devices = [self._token("d") for _ in range(12)]
            for number in range(random.randint(40, 90)):
                card = replace(stolen, name=self._token("c")) if burst % 3 else stolen
                ts = start + timedelta(minutes=random.uniform(0, minutes))
                self._pay(
                    card, merchant, ts, random.randint(50, 200), devices[number // 8], CARD_TESTING, 0.7
                )

    def take_over(self, accounts: int) -> None:
        """Take accounts over: at night a stranger's device pays two to four times, far above the card's mean."""
        random = self._random
        for card in random.sample(self._cards, accounts):
            device = self._token("d")
            start = self._moment(random.randrange(self._days // 2, self._days - 1), range(4))
            for _ in range(random.randint(2, 4)):
                ts = start + timedelta(minutes=random.uniform(0, 90))
                cents = int(card.level * random.uniform(8, 20))
                self._pay(card, self._any_merchant(), ts, cents, device, ACCOUNT_TAKEOVER, 0.3)

    def breach(self, stolen: int) -> None:
        """Breach a web shop, at which cards pay in the second week.

        From the fourth week on, two devices use half of these cards up one by one: by day, for usual amounts.
        """
        random = self._random
        customers = random.sample(self._cards, 2 * stolen)
        for card in customers:
            day = random.randrange(7, 14)
            cents = self._price(card, self.shop)
            self._pay(card, self.shop, self._moment(day, _DAY), cents, self._device(card, day))
        fences = [each for each in self._merchants if each.mcc == _ELECTRONICS]
        for number in range(2):
            ts, device = self._moment(21 + 6 * number, range(9, 12)), self._token("d")
            for card in customers[:stolen][number::2]:
                for _ in range(random.randint(2, 3)):
                    ts += timedelta(minutes=random.uniform(2, 15))
                    cents = int(card.level * random.uniform(0.5, 3))
                    self._pay(card, random.choice(fences), ts, cents, device, COMPROMISED_MERCHANT, 0.2)

    # --- what they are made of ---------------------------------------------------------------------

    def _token(self, kind: str) -> str:
        """Return a name that does not tell who has it."""
        return f"{kind}{self._random.getrandbits(40):010x}"

    def _merchant(self, i: int) -> _Merchant:
        [country] = self._random.choices(list(_COUNTRIES), list(_COUNTRIES.values()))
        return _Merchant(f"m{i:03d}", country, *_KINDS[i % len(_KINDS)])

    def _any_merchant(self) -> _Merchant:
        return self._random.choices(self._merchants, cum_weights=self._popularity)[0]

    def _online(self, card: _Card) -> _Merchant:
        return self._random.choice(card.favourites) if self._random.random() < 0.7 else self._any_merchant()

    def _nearby(self, card: _Card, day: int) -> _Merchant:
        """Return a merchant where the card's holder is on that day."""
        country, days = card.abroad
        here = country if day in days else _HOME
        known = [each for each in card.favourites if each.country == here]
        is_known = bool(known) and self._random.random() < 0.7
        return self._random.choice(known if is_known else self._by_country[here])

    def _card(self) -> _Card:
        """Return a new card. One in eight shares the devices of the card before it. One in ten is used much at night.

        One in six holders goes abroad for a week.
        """
        random = self._random
        devices = [(0, self._token("d"))]
        if self._cards and random.random() < 0.125:
            devices = self._cards[-1].devices
        elif random.random() < self._days / 300:
            devices.append((random.randrange(1, self._days), self._token("d")))
        return _Card(
            name=self._token("c"),
            bin=random.choice(self._bins),
            level=random.lognormvariate(8.0, 0.5),
            per_day=random.uniform(0.6, 1.8),
            night_share=0.3 if random.random() < 0.1 else 0.02,
            online_share=random.uniform(0.2, 0.8),
            favourites=[self._any_merchant() for _ in range(10)],
            devices=devices,
            abroad=self._trip() if random.random() < 0.16 else ("", range(0)),
        )

    def _trip(self) -> tuple[str, range]:
        first = self._random.randrange(self._days)
        countries = sorted(self._by_country.keys() - {_HOME})
        return self._random.choice(countries), range(first, first + 7)

    def _device(self, card: _Card, day: int) -> str:
        if self._random.random() < 0.01:
            return self._random.choice(self._public_devices)
        return next(device for first, device in reversed(card.devices) if first <= day)

    def _count(self, mean: float) -> int:
        """Return a random number of a Poisson distribution."""
        number, time = 0, self._random.expovariate(mean)
        while time < 1:
            number, time = number + 1, time + self._random.expovariate(mean)
        return number

    def _moment(self, day: int, hours: range) -> datetime:
        """Return a random moment of a day, within hours of the local time."""
        weights = _DAY_WEIGHTS if hours == _DAY else None
        [hour] = self._random.choices(hours, weights)
        # Convert to UTC, so that hours added later are real time.
        local = _FIRST_DAY + timedelta(days=day, hours=hour, seconds=self._random.uniform(0, 3600))
        return local.astimezone(UTC)

    def _price(self, card: _Card, merchant: _Merchant) -> int:
        """Return a price in cents, at least 50."""
        cents = int(card.level * merchant.price * self._random.lognormvariate(0.0, 0.5))
        if self._random.random() < merchant.whole_share:
            cents = round(cents, -2)
        return max(cents, 50)

    def _pay(
        self,
        card: _Card,
        merchant: _Merchant,
        at: datetime,
        cents: int,
        device: str | None,
        label: str = "",
        declined_share: float = 0.04,
    ) -> None:
        random = self._random
        event = {
            "ts": int(at.timestamp() * 1000),
            "card": card.name,
            "bin": card.bin,
            "card_country": _HOME,
            "device": device,
            "ip": None if device is None else f"10.{random.randrange(256)}.{random.randrange(256)}.1",
            "merchant": merchant.name,
            "mcc": merchant.mcc,
            "country": merchant.country,
            "amount": f"{cents // 100}.{cents % 100:02d}",
            "currency": _CURRENCIES.get(merchant.country, "EUR"),
            "channel": "pos" if device is None else random.choice(("web", "app")),
            "declined": random.random() < declined_share,
        }
        self.made.append((event, label))
