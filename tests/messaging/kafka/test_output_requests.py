"""What is written together is split into parts that fit a request to a topic with the default limit."""

from railgun.messaging.kafka.output import _REQUEST_BYTES, Outgoing, _requests
from railgun.messaging.transport import Headers


def test_keys_count_too() -> None:
    """They may be those of records of the input topic."""
    keys = [b"k" * 100_000 for _ in range(12)]
    headers: list[Headers] = [[("n", b"%d" % number)] for number in range(12)]
    parts = list(_requests([Outgoing("a", [b"v"] * 12, keys, headers), Outgoing("b", [b"w"], [None])]))
    assert [sum(len(each.values) for each in part) for part in parts] == [5, 5, 3]
    assert all(
        sum(len(key or b"") for each in part for key in each.keys) < _REQUEST_BYTES + 100_000
        for part in parts
    )
    written = [each for part in parts for each in part if each.topic == "a"]
    assert [key for each in written for key in each.keys] == keys
    assert [header for each in written for header in each.headers or ()] == headers
