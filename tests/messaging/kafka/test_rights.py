"""What a user lacks on a broker is said in one line: the topic, group or transactional id, and which right."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, NamedTuple

import pytest

from frontend.topics.stream_output import StreamOutput
from railgun.catalog.stream_reading import stream_from_json
from railgun.messaging.errors import TransportError, TransportReadOnlyError, TransportRefusedError
from railgun.messaging.kafka.broker_wait import BrokerWait
from railgun.messaging.kafka.group import GroupMember
from railgun.messaging.kafka.membership import GroupMembers, GroupMembership
from railgun.messaging.kafka.output import (
    Outgoing,
    OutputAbortedError,
    PlainOutput,
    TransactionalOutput,
)
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.sole_writer import KafkaSoleWriter
from railgun.messaging.kafka.topics import KafkaTopics
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition, TopicSettings
from railgun.registry.topics import Topics
from tests.broker.own_topics import own_prefix
from tests.broker.secured_broker import Right, SecuredBroker, passed, rights_of
from tests.forked import run

PASSWORD = "pw-not-to-be-seen"
_PATIENCE_S = 60.0


class Place(NamedTuple):
    """A user with a topic `<prefix>.log`, which has a record, and the names that begin with the prefix."""

    broker: SecuredBroker
    prefix: str
    settings: KafkaSettings

    def name(self, end: str) -> str:
        return f"{self.prefix}.{end}"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    found = SecuredBroker(tmp_path_factory.mktemp("rights") / "broker")
    try:
        found.begin()
        yield found
    finally:
        found.stop()


@pytest.fixture
def place(broker: SecuredBroker) -> Place:
    prefix = own_prefix("r")
    with KafkaTransport(KafkaSettings(broker.open_address)) as log:
        log.create_topic(f"{prefix}.log", 1, TopicSettings(is_compacted=True))
        log.create_topic(f"{prefix}.s.in", 1)
        log.append(f"{prefix}.s.in", 0, [b"x"])
    broker.add_user(prefix, PASSWORD)
    return Place(broker, prefix, broker.settings(prefix, PASSWORD))


class _Owner:
    """Of a member of a group."""

    def start(self, where: TopicPartition, committed: int) -> int | None:
        return committed if committed >= 0 else None

    def assigned(self, partitions: list[TopicPartition]) -> None:
        pass

    def revoked(self, partitions: list[TopicPartition]) -> None:
        pass

    def lost(self, partitions: list[TopicPartition]) -> None:
        pass

    def committed(self, positions: Mapping[TopicPartition, int]) -> None:
        pass


def _transport(do: Callable[[KafkaTransport, Place], Any]) -> Callable[[Place], None]:
    def attempt(place: Place) -> None:
        with KafkaTransport(place.settings) as log:
            do(log, place)

    return attempt


def _membership(place: Place) -> None:
    with GroupMembership(place.settings, place.name("nodes"), place.name("log"), "n", 6.0) as member:
        until_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until_s and not member.leads:
            member.poll(0.1)


def _input(place: Place) -> None:
    member = GroupMember(place.settings, place.name("s.in"), [place.name("s.in")], _Owner())
    try:
        until_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until_s and not member.poll(0.1, 10):
            pass
    finally:
        member.close()


def _sole_writer(place: Place) -> None:
    with KafkaSoleWriter(place.settings, place.name("catalog")) as writer:
        writer.append(TopicPartition(place.name("log"), 0), [(b"k", b"v")])


def _transactions(place: Place) -> None:
    TransactionalOutput(place.settings, place.name("s.in.f")).close()


def _replies(place: Place) -> None:
    output = PlainOutput(place.settings, lambda: False)
    member: Any = None
    try:
        output.write(lambda: ([Outgoing(place.name("log"), [b"v"], [b"k"])], {}), member)
    except OutputAbortedError as error:
        raise TransportRefusedError("", str(error), "") from error
    finally:
        output.close()


_TOPIC = "*"
_ATTEMPTS: dict[str, tuple[Right, str, Callable[[Place], None]]] = {
    "make a topic": (
        Right("Create", "topic", _TOPIC),
        "new",
        _transport(lambda log, place: log.create_topic(place.name("new"), 1)),
    ),
    "compare a topic": (
        Right("DescribeConfigs", "topic", _TOPIC),
        "log",
        _transport(
            lambda log, place: log.create_topic(place.name("log"), 1, TopicSettings(is_compacted=True))
        ),
    ),
    "read": (
        Right("Read", "topic", _TOPIC),
        "s.in",
        _transport(lambda log, place: log.read(place.name("s.in"), 0, 0, 1, 1 << 20)),
    ),
    "write": (
        Right("Write", "topic", _TOPIC),
        "s.in",
        _transport(lambda log, place: log.append(place.name("s.in"), 0, [b"v"])),
    ),
    "write replies": (Right("Write", "topic", _TOPIC), "log", _replies),
    "write in a transaction": (Right("Write", "topic", _TOPIC), "", _sole_writer),
    "delete a topic": (
        Right("Delete", "topic", _TOPIC),
        "log",
        _transport(lambda log, place: log.delete_topic(place.name("log"))),
    ),
    "trim a log": (
        Right("Delete", "topic", _TOPIC),
        "s.in",
        _transport(lambda log, place: log.trim(place.name("s.in"), 0, 1)),
    ),
    "change how long records are kept": (
        Right("AlterConfigs", "topic", _TOPIC),
        "log",
        _transport(lambda log, place: log.set_retention(place.name("log"), None)),
    ),
    "see the members": (
        Right("Describe", "group", "nodes"),
        "nodes",
        lambda place: GroupMembers(place.settings, place.name("nodes")).now() and None,
    ),
    "lead": (Right("Read", "group", "nodes"), "nodes", _membership),
    "read an input topic": (Right("Read", "group", "s.in"), "s.in", _input),
    "write the catalogue": (Right("Write", "transactional-id", "catalog"), "catalog", _sole_writer),
    "reply in transactions": (Right("Write", "transactional-id", "s.in.*"), "s.in.f", _transactions),
}


def _all_rights(place: Place) -> list[Right]:
    """What anybody needs for the attempts."""
    topics = ["Create", "Describe", "DescribeConfigs", "Read", "Write", "Delete"]
    named = [(each, "topic", "*") for each in topics]
    named += [("Read", "group", "nodes"), ("Describe", "group", "nodes"), ("Read", "group", "s.in")]
    named += [("Write", "transactional-id", "catalog"), ("Write", "transactional-id", "s.in.*")]
    return [Right(operation, resource, place.name(end)) for operation, resource, end in named]


@pytest.mark.parametrize("what", _ATTEMPTS)
def test_a_right_that_is_missing_is_named(place: Place, what: str) -> None:
    lacking, where, attempt = _ATTEMPTS[what]
    lost = Right(lacking.operation, lacking.resource, place.name(lacking.name))
    rights = _all_rights(place)
    if (lacking.operation, lacking.resource) == ("Describe", "group"):
        rights.remove(Right("Read", "group", lost.name))
    place.broker.grant(place.prefix, rights)
    if lost in rights:
        place.broker.revoke(place.prefix, lost)
    with pytest.raises(TransportRefusedError) as raised:
        attempt(place)
    said = str(raised.value)
    kind = lacking.resource.replace("-", " ")
    assert f"Give this user the right {lacking.operation} on the {kind}" in said
    assert place.name(where).rstrip(".") in said
    assert "authorization failed" in said.lower()
    assert PASSWORD not in said
    # With it, it is done.
    place.broker.grant(place.prefix, [lost])
    attempt(place)


def test_a_setting_that_may_not_be_changed_is_a_warning(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.broker.grant(place.prefix, _all_rights(place))
    overwritten = TopicSettings(is_compacted=True, is_overwritten=True)
    with KafkaTransport(place.settings) as log, caplog.at_level(logging.WARNING):
        log.create_topic(place.name("log"), 1, overwritten)
    (said,) = [record.getMessage() for record in caplog.records if "could not be set" in record.getMessage()]
    assert place.name("log") in said
    assert "Give this user the right AlterConfigs on the topic" in said


def test_whoever_may_write_nowhere_reads(place: Place) -> None:
    place.broker.grant(place.prefix, [Right("Read", "topic", place.name("*"))])
    for _ in range(5):
        with KafkaTransport(place.settings, is_read_only=True) as log:
            assert log.read(place.name("s.in"), 0, 0, 1, 1 << 20).values() == [b"x"]
            with pytest.raises(TransportReadOnlyError):
                log.append(place.name("s.in"), 0, [b"v"])


# --- who one is ------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["frontend", "node"])
def test_a_wrong_password_ends_a_command_with_one_line(
    broker: SecuredBroker, role: str, tmp_path: Path
) -> None:
    broker.add_user(role, "right")
    config = tmp_path / "railgun.toml"
    lines = "".join(f'{key} = "{value}"\n' for key, value in passed(role, PASSWORD).items())
    config.write_text(f'[cluster]\nbroker = "{broker.guarded}"\n[kafka]\n{lines}')
    words = {
        "frontend": ["--http", "127.0.0.1:0"],
        "node": ["--units", "1", "--data", str(tmp_path / "data")],
    }
    ended = run("railgun", [role, "--config", str(config), *words[role]])
    assert ended.returncode == 2
    (line,) = [each for each in ended.stderr.splitlines() if each.startswith(f"railgun {role}: ")]
    assert broker.guarded in line
    assert "Authentication failed" in line
    assert "Check the security settings of [kafka]" in line
    assert PASSWORD not in ended.stderr + ended.stdout
    assert "Traceback" not in ended.stderr


def test_a_password_that_is_changed_meanwhile_is_told(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """`/readyz` shows the reason."""
    place.broker.add_user(place.prefix, "another")
    with pytest.raises(TransportRefusedError) as raised:
        KafkaTopics(place.settings).all(5.0)
    wait = BrokerWait(place.settings, logging.getLogger("railgun.test"))
    wait.stop()
    wait.away(raised.value)
    assert wait.reason is not None
    assert wait.reason.startswith(
        f"the broker refuses what is asked, and is asked again: {place.broker.guarded}: "
    )
    assert "Check the security settings of [kafka]" in wait.reason
    assert "does it run" not in caplog.text


def test_a_broker_that_wants_another_protocol_is_told_with_what_to_check(
    broker: SecuredBroker, caplog: pytest.LogCaptureFixture
) -> None:
    settings = KafkaSettings(broker.guarded)
    with pytest.raises(TransportError) as raised:
        KafkaTopics(settings).all(3.0)
    wait = BrokerWait(settings, logging.getLogger("railgun.test"))
    wait.stop()
    wait.away(raised.value)
    assert "are its address and [kafka] security.protocol right?" in caplog.text


# --- the script ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "more"),
    [
        ("frontent", []),
        ("frontend", ["payments", "--ouput", "a"]),
        ("frontend", ["payments", "--output"]),
        ("node", ["--output", "a"]),
        ("spark", ["--dead", "a"]),
    ],
)
def test_a_role_or_an_option_that_there_is_not(role: str, more: list[str], tmp_path: Path) -> None:
    with pytest.raises(CalledProcessError) as raised:
        rights_of(role, "railgun", more, tmp_path / "acls")
    assert raised.value.returncode == 2


def test_topics_with_names_of_their_own(place: Place, tmp_path: Path) -> None:
    """Exactly what the script grants, of a stream whose topics begin with another prefix."""
    own, elsewhere = place.name("railgun"), place.name("prod")
    with KafkaTransport(KafkaSettings(place.broker.open_address)) as log:
        log.create_topic(f"{elsewhere}.in", 1)
        log.append(f"{elsewhere}.in", 0, [b"event"])
    options = [f"--{each}={elsewhere}.{each}".split("=") for each in ("output", "dead")]
    words = ["s", "--input", f"{elsewhere}.in", *(word for option in options for word in option)]
    place.broker.grant(place.prefix, rights_of("frontend", own, words, tmp_path / "acls"))
    member = GroupMember(place.settings, f"{own}.s.in", [f"{elsewhere}.in"], _Owner())
    try:
        read: list[Any] = []
        until_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until_s and not read:
            read = member.poll(0.1, 10)
        assert [each.value() for each in read] == [b"event"]
    finally:
        member.close()
    stream = stream_from_json(
        {
            "name": "s",
            "fields": {"x": "long"},
            "output": {"topic": f"{elsewhere}.output", "dead": f"{elsewhere}.dead"},
        }
    )
    output = StreamOutput.of(stream, Topics(own))
    with KafkaTransport(place.settings) as log:
        for _ in range(2):
            output.make_topics(log, 1)
        for topic in (output.topic, output.dead):
            log.append(topic, 0, [b"v"])
        with pytest.raises(TransportRefusedError, match="Give this user the right Write on the topic"):
            log.append(f"{elsewhere}.in", 0, [b"v"])
