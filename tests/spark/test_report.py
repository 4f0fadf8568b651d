"""What a validation found, as people and as programs read it."""

from railgun.spark.validation.report import MetricCheck, Report
from railgun.spark.validation.time_range import TimeRange

RIGHT = MetricCheck("n", 1_200)
WRONG = MetricCheck("total", 7, 2, difference=0.25)
UNDECIDED = MetricCheck("vast", 4, beyond=2)


def report(*checks: MetricCheck) -> Report:
    return Report("s", 1_211, 0, 2.0, checks)


def test_equal_is_what_has_no_mismatch() -> None:
    said = [
        ((RIGHT,), True, 0, "all equal"),
        ((RIGHT, UNDECIDED), True, 2, "1,202 equal, 2 undecided"),
        ((RIGHT, WRONG), False, 0, "1,205 equal, 2 WRONG"),
        ((WRONG, UNDECIDED), False, 2, "7 equal, 2 WRONG, 2 undecided"),
    ]
    for checks, equal, undecided, verdict in said:
        made = report(*checks)
        values = sum(each.compared for each in checks)
        assert (made.as_json()["equal"], made.as_json()["undecided"]) == (equal, undecided)
        assert made.as_json()["mismatches"] == made.mismatches == (0 if equal else 2)
        last = made.as_text().splitlines()[-1]
        assert last == f"1,211 events, {values:,} values compared: {verdict}"


def test_the_range_is_told() -> None:
    made = Report("s", 90, 0, 1.0, [RIGHT], times=TimeRange(1_000, 2_000), in_range=28)
    told = made.as_json()
    assert (told["from_ms"], told["until_ms"], told["in_range"]) == (1_000, 2_000, 28)
    assert "90 events, 28 of these from 1970-01-01T00:00:01Z until 1970-01-01T00:00:02Z, " in made.as_text()
    assert "in_range" not in report(RIGHT).as_json()
