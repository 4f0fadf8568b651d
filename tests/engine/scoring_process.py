"""A process that scores numbered events until it is killed, saying each answer as it gets it."""

import sys
from pathlib import Path

import railgun

DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card", "*"]
[streams.s.fields]
id = "long"
ts = "timestamp"
card = "string"
x = "double"
[[metrics]]
sql = "SELECT count(*) AS n, sum(x) AS total FROM s OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS of_card, last(x) AS newest FROM s GROUP BY card OVER SLIDING 1 SECOND"
"""


def event(number: int) -> dict[str, object]:
    return {"id": number, "ts": 1_700_000_000_000 + 10 * number, "card": f"c{number % 7}", "x": number * 0.1}


def main(folder: Path, first: int) -> None:
    with railgun.Engine(folder) as engine:
        engine.apply(DEFINITIONS)
        number = first
        while True:
            metrics = engine.score("s", event(number))["metrics"]
            sys.stdout.write(
                f"{number} {metrics['n']} {metrics['total']!r} {metrics['of_card']} {metrics['newest']!r}\n"
            )
            sys.stdout.flush()
            number += 1
