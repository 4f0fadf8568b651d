"""A cluster of processes on a broker with SASL and ACLs. Each role has a principal, with the rights of the script."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import httpx

from railgun.messaging.kafka.settings import KafkaSettings
from railgun.registry.topics import Topics
from tests.broker.secured_broker import Right, SecuredBroker, passed, rights_of
from tests.forked import Forked
from tests.frontend.serving import until

STARTS_S = 200.0
"""How long an answer of a cluster that starts may take."""
_STOPS_S = 100.0
_AUDIT = "-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=debug"
_AUDITED = re.compile(
    r"Principal = User:(\S+) is (Allowed|Denied) operation = (\S+) .* on resource = (\S+):LITERAL:(\S+) for request"
)
_OPERATIONS = {"DESCRIBE_CONFIGS": "DescribeConfigs", "ALTER_CONFIGS": "AlterConfigs"}


def password(role: str) -> str:
    return f"pw-of-{role}-not-to-be-seen"


class Secured:
    """A cluster of processes, all that they say, and a network address for each role.

    roles: what the script is asked for, beside each role.
    said: the files with what the processes said.
    """

    def __init__(self, folder: Path, roles: Mapping[str, Iterable[str]]) -> None:
        self.folder, self.topics = folder, Topics("railgun")
        self.broker = SecuredBroker(folder / "broker", [_AUDIT])
        self.broker.begin()
        self.rights: dict[str, list[Right]] = {}
        for role, words in roles.items():
            self.broker.add_user(role, password(role))
            self.grant(role, words)
        self.said: list[Path] = []
        self.processes: dict[str, Forked] = {}

    def grant(self, role: str, words: Iterable[str]) -> None:
        """Give a role the rights that the script grants with these words."""
        self.rights[role] = rights_of(role, self.topics.prefix, words, self.folder / "acls")
        self.broker.grant(role, self.rights[role])

    def start(self, role: str, name: str, *words: str, more: str = "") -> Forked:
        """Start one of the roles' processes."""
        config, said = self.folder / f"{name}.toml", self.folder / f"{name}.{len(self.said)}.log"
        own, called = passed(role, password(role)), "auto" if role == "frontend" else name
        config.write_text(
            f'[cluster]\nbroker = "{self.broker.guarded}"\nnode_name = "{called}"\nsession_timeout_s = "6s"\n'
            f'drop_grace_s = "2s"\n[logging]\nlevel = "debug"\n[engine]\ncheckpoint_interval_s = 0.5\n{more}[kafka]\n'
            + "".join(f"{key} = {json.dumps(value)}\n" for key, value in own.items())
        )
        self.said.append(said)
        with said.open("wb") as log:
            self.processes[name] = Forked(
                "railgun", [role, "--config", str(config), *words], stdout=log, stderr=log
            )
        return self.processes[name]

    def serve(self, http: httpx.Client, name: str, *words: str, more: str = "") -> Path:
        """Have a front-end, and the client ask it once it is ready. Returns the file with what it says."""
        process = self.start("frontend", name, "--http", "127.0.0.1:0", *words, more=more)
        said = self.said[-1]

        def is_served() -> bool:
            assert process.poll() is None, said.read_text()
            found = re.search(r'"url": ?"([^"]+)"', said.read_text())
            if found is not None:
                http.base_url = found[1]
            return found is not None

        until(is_served)
        return said

    def settings(self, role: str) -> KafkaSettings:
        return self.broker.settings(role, password(role))

    def end(self, name: str) -> None:
        process = self.processes.pop(name)
        process.terminate()
        assert process.wait(_STOPS_S) == 0

    def audited(self) -> dict[str, set[tuple[str, Right]]]:
        """What the broker has decided: for each principal ("Allowed" or "Denied", what it asked for)."""
        found: dict[str, set[tuple[str, Right]]] = {}
        text = (self.broker.folder / "broker.log").read_text(encoding="utf-8")
        for user, outcome, operation, resource, name in _AUDITED.findall(text):
            right = Right(
                _OPERATIONS.get(operation, operation.capitalize()),
                "transactional-id" if resource == "TransactionalId" else resource.lower(),
                name,
            )
            found.setdefault(user, set()).add((outcome, right))
        return found

    def check_used(self, beginning: str = "") -> None:
        """Each role has used each of its rights on names that begin so."""
        audited = self.audited()
        for role, rights in self.rights.items():
            used = {right for outcome, right in audited[role] if outcome == "Allowed"}
            for right in [each for each in rights if each.name.startswith(beginning)]:
                assert any(_is_of(each, right) for each in used), f"{role} never used {right}"

    def denied(self, role: str) -> set[Right]:
        """What a role wanted and was denied."""
        return {right for outcome, right in self.audited()[role] if outcome == "Denied"}

    def close(self) -> None:
        """End everything."""
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.broker.stop()


def _is_of(used: Right, granted: Right) -> bool:
    """Whether a right that was used is one that was granted."""
    if (used.operation, used.resource) != (granted.operation, granted.resource):
        return False
    is_prefixed = granted.name.endswith("*")
    return used.name.startswith(granted.name[:-1]) if is_prefixed else used.name == granted.name
