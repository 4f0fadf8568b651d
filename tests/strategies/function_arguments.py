"""Every function over arguments at the edges of what it does: for kernels and for Spark, both against the oracle."""

import math
import random
import struct
from collections.abc import Iterator
from datetime import date, timedelta
from fractions import Fraction

from tests.oracle.types import LONG_MAX, LONG_MIN, Row, Value

FIELDS = {
    **dict.fromkeys(("n", "i", "c"), "long"),
    **dict.fromkeys(("x", "y"), "double"),
    "d": "decimal(10,3)",
    "e": "decimal(18,3)",
    "w": "decimal(18,18)",
    **dict.fromkeys(("s", "r"), "string"),
    **dict.fromkeys(("t", "u"), "timestamp"),
    **dict.fromkeys(("p", "q"), "boolean"),
}
CALENDAR = ("HOUR", "MINUTE", "DAY_OF_WEEK", "DAY", "MONTH", "YEAR")
# With summer in the north, in the south, the other way round, by half an hour; without rules; with odd minutes.
ZONES = (
    "Europe/Lisbon",
    "America/Sao_Paulo",
    "Europe/Dublin",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "UTC",
)
ZONES += ("Asia/Kathmandu", "America/New_York", "Pacific/Apia", "Etc/GMT-2")
TEXTS = (
    *(
        "SUBSTR(s, i)",
        "SUBSTR(s, i, c)",
        "SUBSTR(s || r, 2, c)",
        "LENGTH(s)",
        "TRIM(s)",
        "s || r",
        "s || 'é'",
    ),
    *(f"{choice}({a})" for choice in ("GREATEST", "LEAST") for a in ("n, i, c", "x, y, n", "d, e", "s, r")),
    *(f"{choice}({a})" for choice in ("GREATEST", "LEAST") for a in ("t, u", "p, q", "NULL, n")),
    *("NULLIF(n, i)", "NULLIF(n, x)", "NULLIF(x, 0.5)", "NULLIF(d, 1)", "NULLIF(d, e)", "NULLIF(s, 'a')"),
    *("NULLIF(t, u)", "NULLIF(p, q)", "NULLIF(s, r)"),
    *(f"{whole}({a})" for whole in ("ROUND", "FLOOR", "CEIL") for a in ("n", "x", "d", "e", "w")),
    *("ROUND(d, 0)", "ROUND(d, 1)", "ROUND(d, 2)", "ROUND(d, 3)", "ROUND(e, 2)", "ROUND(w, 17)"),
    *("SQRT(x)", "SQRT(n)", "SQRT(e)"),
    *("CAST(n AS double)", "CAST(e AS double)", "CAST(x AS long)", "CAST(e AS long)", "CAST(w AS long)"),
    *("CAST(n AS decimal(18,0))", "CAST(n AS decimal(4,2))", "CAST(n AS decimal(18,16))"),
    *(
        "CAST(e AS decimal(5,1))",
        "CAST(d AS decimal(18,9))",
        "CAST(w AS decimal(3,2))",
        "CAST(e AS decimal(18,0))",
    ),
    *(f"{part}({time})" for part in CALENDAR for time in ("t", "u")),
    *(f"{part}(t IN '{zone}')" for part in ("HOUR", "DAY_OF_WEEK") for zone in ZONES),
    *(f"{part}(u IN 'Europe/Lisbon')" for part in CALENDAR),
    *("CAST(n AS timestamp)", "CAST(t AS long)", "CAST(n AS string)", "CAST(s AS long)", "CAST(r AS long)"),
)

_LONGS = (0, 1, -1, 2, 3, 10, LONG_MAX, LONG_MIN, LONG_MAX - 1, LONG_MIN + 1, 2**53 + 1, 10**18, 1 - 10**18)
_DOUBLES = (
    0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    0.49999999999999994,
    1e300,
    -1e300,
    5e-324,
    2.0**52,
    2.0**53,
    1e18,
)
_DOUBLES += (
    2.0**63,
    -(2.0**63),
    math.nextafter(2.0**63, 0),
    math.nextafter(-(2.0**63), -math.inf),
    2.0**52 + 1,
)
_NUMBERS = (
    "0",
    "-0",
    "007",
    "-12",
    "+5",
    " 12 ",
    "12 ",
    "1_0",
    "1.0",
    "1e3",
    "-",
    "",
    "--1",
    "12\n",
    "١٢",
    "１２",
)
_NUMBERS += (
    *(str(n) for n in _LONGS),
    str(LONG_MAX + 1),
    str(LONG_MIN - 1),
    "0" * 30 + "7",
    "9" * 30,
    "-" + "9" * 19,
)
_CHARACTERS = "ab  \t\n\u00a0\u3000éß日😀e\u0301\x00-19"
_LONG_STRINGS = ("a" * 65_535, "é" * 32_767, "😀" * 16_383, " " * 65_534)


def rows(seed: int, count: int) -> Iterator[Row]:
    """Some rows of arguments, the same for the same seed."""
    rng = random.Random(f"function arguments {seed}")
    for _ in range(count):
        yield {name: None if rng.random() < 0.08 else _value(rng, name) for name in FIELDS}


def _value(rng: random.Random, name: str) -> Value:
    kind = FIELDS[name]
    if name in "ic" and rng.random() < 0.8:
        return rng.randrange(-1, 9)
    if name == "t":
        if rng.random() < 0.4:
            return _beside_a_change(rng)
        # Around midnights, of the years that people know and of some others.
        midnight: int = 86_400_000 * rng.randrange(-1_500_000, 1_500_000)
        return midnight + rng.choice((0, -1, 1, rng.randrange(86_400_000)))
    if kind in ("long", "timestamp"):
        return rng.choice(_LONGS) if rng.random() < 0.3 else _signed(rng, 63)
    if kind == "double":
        return _double(rng)
    if kind == "boolean":
        return rng.random() < 0.5
    return _string(rng) if kind == "string" else _decimal(rng, kind)


def _beside_a_change(rng: random.Random) -> int:
    """Hours of Sundays at which clocks change, mostly, and the milliseconds before them."""
    year, month = rng.randrange(1960, 2110), rng.choice((3, 4, 9, 10, 11))
    first = date(year, month, 1)
    sunday = first + timedelta(days=(6 - first.weekday()) + 7 * rng.randrange(5))
    hours = 24 * (sunday - date(1970, 1, 1)).days + rng.randrange(-14, 14)
    return 3_600_000 * hours + rng.choice((0, -1, 1, 1_800_000, 1_799_999))


def _signed(rng: random.Random, bits: int) -> int:
    return (rng.getrandbits(bits) >> rng.randrange(bits)) * rng.choice((1, -1))


def _double(rng: random.Random) -> float:
    if rng.random() < 0.2:
        return rng.choice(_DOUBLES)
    if rng.random() < 0.5:
        # A half, or what lies next to one.
        half = float(_signed(rng, 52)) + 0.5
        return rng.choice((half, math.nextafter(half, math.inf), math.nextafter(half, -math.inf))) + 0.0
    (drawn,) = struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))
    return float(drawn) + 0.0 if math.isfinite(drawn) else 0.0


def _decimal(rng: random.Random, kind: str) -> Fraction:
    precision, scale = (int(digits) for digits in kind[8:-1].split(","))
    limit = 10**precision - 1
    unscaled = _signed(rng, limit.bit_length())
    if rng.random() < 0.5:
        unit: int = 10 ** rng.randrange(1, precision)
        unscaled = unscaled // unit * unit + rng.choice((0, 1, -1, unit // 2, unit // 2 - 1, unit // 2 + 1))
    return Fraction(max(-limit, min(limit, unscaled)), 10**scale)


def _string(rng: random.Random) -> str:
    form = rng.random()
    if form < 0.3:
        return rng.choice(_NUMBERS)
    if form < 0.4:
        return str(_signed(rng, 66))
    if form < 0.402:
        return rng.choice(_LONG_STRINGS)
    return "".join(rng.choice(_CHARACTERS) for _ in range(rng.randrange(9)))
