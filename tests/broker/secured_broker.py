"""A broker that asks clients who they are (SASL/SCRAM) and holds them to their rights (ACLs).

The rights are those that `config/kafka-acls.sh` grants: it is run with a command that stands for Kafka's own, and notes
what it is asked for.
"""

import os
import stat
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from railgun.broker.commands import HOST, Ports
from railgun.broker.held_ports import held_port, number_of
from railgun.broker.installation import Say
from railgun.broker.local import LocalBroker, Status
from railgun.messaging.kafka.settings import KafkaSettings, Value
from tests.broker.quick_broker import prepare_quick, unheard
from tests.forked import ROOT

SCRIPT = ROOT / "config" / "kafka-acls.sh"
MECHANISM = "SCRAM-SHA-256"
_ITERATIONS, _ANSWER_S = 4096, 30.0
_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
_OPERATIONS = {
    "Create": AclOperation.CREATE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Delete": AclOperation.DELETE,
    "AlterConfigs": AclOperation.ALTER_CONFIGS,
}


class Right(NamedTuple):
    """What a principal may do. name: it ends in a star where all names that begin so are meant."""

    operation: str
    resource: str
    name: str


def rights_of(role: str, prefix: str, streams: Iterable[str], folder: Path) -> list[Right]:
    """Those that the script grants. folder: where the command that it is given may be kept."""
    folder.mkdir(exist_ok=True)
    command, noted = folder / "kafka-acls", folder / "noted"
    noted.write_text("")
    command.write_text(f'#!/bin/sh\necho "$@" >> "{noted}"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PREFIX": prefix, "KAFKA_ACLS": str(command)}
    subprocess.run([SCRIPT, role, "User:somebody", *streams], env=environment, check=True)
    return [right for line in noted.read_text().splitlines() for right in _read(line.split())]


def _read(words: list[str]) -> list[Right]:
    """The rights of one call of Kafka's command. A word that is not known raises KeyError or ValueError."""
    assert words[:3] == ["--add", "--allow-principal", "User:somebody"]
    resource, name = words[3].removeprefix("--"), words[4]
    assert words[5] == "--resource-pattern-type"
    star = {"prefixed": "*", "literal": ""}[words[6]]
    flags, operations = words[7::2], words[8::2]
    assert set(flags) == {"--operation"}
    assert all(each in _OPERATIONS for each in operations)
    assert resource in _RESOURCES
    return [Right(operation, resource, name + star) for operation in operations]


class SecuredBroker(LocalBroker):
    """A broker with a second address, in clear, where the tests themselves may do everything.

    guarded: the address where clients have to say who they are.  open_address: the other one.
    """

    def __init__(self, folder: Path, java_options: Sequence[str] = ()) -> None:
        super().__init__(folder, [*prepare_quick(folder), *java_options])
        self.guarded = self.open_address = ""

    def begin(self) -> None:
        """Start it."""
        self.open_address = self.start(0, unheard).address
        self._admin = AdminClient({"bootstrap.servers": self.open_address})

    def stop(self) -> bool:
        """As LocalBroker's. The tests' own client ends too: it would try to reach the broker for ever."""
        del self._admin
        return super().stop()

    def add_user(self, name: str, password: str) -> None:
        """Make a user, who has no rights, or give it another password."""
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, _ITERATIONS)
        made = UserScramCredentialUpsertion(name, credential, password.encode())
        self._admin.alter_user_scram_credentials([made])[name].result(_ANSWER_S)

    def grant(self, user: str, rights: Iterable[Right]) -> None:
        """Give a user rights."""
        given = list(rights)
        for future in self._admin.create_acls([_binding(user, each) for each in given]).values():
            future.result(_ANSWER_S)
        for each in given:
            self._await_right(user, each, is_there=True)

    def _await_right(self, user: str, right: Right, *, is_there: bool) -> None:
        """Wait until the broker knows of a change: it hears of it from its controller."""
        wanted = AclBindingFilter(*_parts(user, right))
        until_s = time.monotonic() + _ANSWER_S
        while bool(self._admin.describe_acls(wanted).result(_ANSWER_S)) != is_there:
            assert time.monotonic() < until_s, (user, right)
            time.sleep(0.01)

    def revoke(self, user: str, right: Right) -> None:
        """Take a right from a user, who has it."""
        (future,) = self._admin.delete_acls([AclBindingFilter(*_parts(user, right))]).values()
        assert len(future.result(_ANSWER_S)) == 1, right
        self._await_right(user, right, is_there=False)

    def settings(self, user: str, password: str) -> KafkaSettings:
        """How that user reaches it."""
        return KafkaSettings(self.guarded, pass_through=passed(user, password), answer_timeout_s=10.0)

    def start(self, port: int, say: Say) -> Status:
        with held_port() as guarded:
            self.guarded = f"{HOST}:{number_of(guarded)}"
            return super().start(port, say)

    def _prepare(self, java: Path, jars: Path, ports: Ports) -> None:
        super()._prepare(java, jars, ports)
        lines = self._properties.read_text(encoding="ascii").splitlines()
        settings = dict(line.split("=", 1) for line in lines)
        settings["listeners"] += f",GUARDED://{self.guarded}"
        settings["advertised.listeners"] += f",GUARDED://{self.guarded}"
        settings["listener.security.protocol.map"] += ",GUARDED:SASL_PLAINTEXT"
        settings |= {
            "sasl.enabled.mechanisms": MECHANISM,
            f"listener.name.guarded.{MECHANISM.lower()}.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        self._properties.write_text(text, encoding="ascii")


def passed(user: str, password: str) -> Mapping[str, Value]:
    """The `[kafka]` settings of a user."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": MECHANISM,
        "sasl.username": user,
        "sasl.password": password,
    }


def _binding(user: str, right: Right) -> AclBinding:
    return AclBinding(*_parts(user, right))


def _parts(
    user: str, right: Right
) -> tuple[ResourceType, str, ResourcePatternType, str, str, AclOperation, AclPermissionType]:
    pattern = ResourcePatternType.PREFIXED if right.name.endswith("*") else ResourcePatternType.LITERAL
    return (
        _RESOURCES[right.resource],
        right.name.removesuffix("*"),
        pattern,
        f"User:{user}",
        "*",
        _OPERATIONS[right.operation],
        AclPermissionType.ALLOW,
    )
