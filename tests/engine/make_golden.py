"""Writes an engine's data folder in the present format versions, portably: run once per version, then leave it alone.

python -m tests.engine.make_golden

What RocksDB holds (the log; the state of each task) is written as JSON of keys and values in hexadecimal, the rest as
it is. So the golden files are those of our own formats, whatever RocksDB makes of its files.
"""

import json
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

from rocksdict import Options, Rdict

import railgun
from railgun.engine.folder import VERSION
from railgun.state.end_marker import END_MARK
from railgun.task.settings import TaskSettings
from reservoir.files import DiskFiles

GOLDEN = Path(__file__).parent / "golden"
SETTINGS = TaskSettings(chunk_events=16, segment_bytes=1 << 12)
DEFINITIONS = """
[streams.payments]
time = "ts"
id = "id"
partitioners = ["card", "*"]
lateness = "1s"
retention = "1h"
[streams.payments.fields]
id = "string"
ts = "timestamp"
card = "string"
shop = "string"
amount = "double"
price = "decimal(12,2)"
n = "long"
ok = "boolean"
[[metrics]]
sql = \"\"\"SELECT count(*) AS count, sum(amount) AS sum, avg(price) AS avg, stddev(n) AS stddev, min(amount) AS min,
max(shop) AS max, first(shop) AS first, last(n) AS last, prev(ok) AS prev, count_distinct(shop) AS distinct
FROM payments WHERE n % 7 <> 3 GROUP BY card OVER SLIDING 1 MINUTE\"\"\"
[[metrics]]
sql = "SELECT sum(n) AS day_n, max(UPPER(shop)) AS day_max FROM payments GROUP BY card, shop OVER TUMBLING 1 DAY"
[[metrics]]
sql = "SELECT count(*) AS all_before, sum(price) AS all_price FROM payments OVER INFINITE DELAYED BY 10 SECONDS"
"""
LATER = "SELECT sum(amount) AS later FROM payments WHERE note IS NULL GROUP BY card OVER SLIDING 30 SECONDS"
STORED, AFTER = 400, 100


def events(first: int, n: int) -> list[dict[str, Any]]:
    """Events as they would be sent, a few late or twice; those of a number are always the same."""
    made = []
    for number in range(first, first + n):
        chance = random.Random(number)
        made.append(
            {
                "id": f"e{number - (chance.random() < 0.05)}",
                "ts": 1_700_000_000_000 + 400 * number - chance.choice([0, 0, 0, 900, 20_000]),
                "card": chance.choice(["a", "b", "çé", None]),
                "shop": chance.choice(["s", "Straße" * 20, "x" * 300, None]),
                "amount": chance.choice([0.1, 1e300, -1e-300, 12.5, chance.random()]),
                "price": f"{chance.randrange(-(10**8), 10**8) / 100:.2f}",
                "n": chance.choice([2**62, -(2**62), 5, None]),
                "ok": chance.choice([True, False, None]),
            }
        )
    return made


def main() -> None:
    """Fill an engine, write its folder down, then note what it says to what comes next."""
    folder = GOLDEN / f"v{VERSION}"
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as made:
        data = Path(made) / "data"
        with railgun.Engine(data, settings=SETTINGS) as engine:
            engine.apply(DEFINITIONS)
            engine.score_many("payments", events(0, STORED // 2))
            engine.add_field("payments", "note", "string")
            engine.add_metrics("payments", LATER)
            engine.score_many("payments", events(STORED // 2, STORED // 2))
        written_down(data, folder)
        with railgun.Engine(data, settings=SETTINGS) as engine:
            replies = [engine.score("payments", event) for event in events(STORED, AFTER)]
    (folder / "expected.json").write_text(json.dumps(replies, indent=0) + "\n", encoding="utf-8")


def databases(data: Path) -> list[Path]:
    """Where RocksDB is in a data folder, relative to it."""
    return [
        Path("log/log"),
        *sorted(path.relative_to(data) for path in data.glob("streams/**/state") if path.is_dir()),
    ]


def written_down(data: Path, folder: Path) -> None:
    """A closed data folder, portably."""
    for place in databases(data):
        database = Rdict(str(data / place), _raw())
        items = {key.hex(): value.hex() for key, value in database.items()}
        database.close()
        target = folder / place.with_suffix(".json")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(items, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    for path in [data / "VERSION", *data.glob("streams/**/reservoir/*"), *data.rglob(END_MARK)]:
        target = folder / path.relative_to(data)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def brought_back(folder: Path, data: Path) -> Path:
    """The data folder of what was written down."""
    files = DiskFiles()
    for path in folder.rglob("*"):
        target = data / path.relative_to(folder)
        if path.is_file() and path.suffix != ".json":
            files.make_folder(target.parent)
            shutil.copyfile(path, target)
    for path in [path for path in folder.rglob("*.json") if path.name != "expected.json"]:
        target = data / path.relative_to(folder).with_suffix("")
        files.make_folder(target)
        database = Rdict(str(target), _raw())
        for key, value in json.loads(path.read_text(encoding="utf-8")).items():
            database[bytes.fromhex(key)] = bytes.fromhex(value)
        database.close()
    return data


def _raw() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    return options


if __name__ == "__main__":
    main()
