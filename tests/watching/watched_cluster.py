"""A cluster of processes with TLS and tokens: a front-end, two nodes, an input topic, and a task that has failed."""

import hashlib
import re
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx

from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.topics import Topics
from railgun.wire.encode import encode_event
from tests.broker.own_topics import own_prefix
from tests.certificates import Authority
from tests.forked import Forked
from tests.frontend.topics.input_topic import InputTopic
from tests.unit.local_units import quick_settings

TOKEN = "railgun_token-of-the-scraper"
_HASH = hashlib.sha256(TOKEN.encode()).hexdigest()
STARTS_S = 200.0
_STOPS_S = 100.0
# Its unit stops a task whose log has an event of a schema that never came.
_FAILING = 99
DEFINITIONS = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card"]
lateness = "1s"
late_policy = "discard"
log_retention = "7d"
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = { type = "string", from = "card.token" }
amount = "double"
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS spent FROM payments GROUP BY card OVER SLIDING 7 DAYS"
[streams.broken]
partitioners = ["card"]
[streams.broken.fields]
card = "string"
[[metrics]]
sql = "SELECT count(*) AS b FROM broken GROUP BY card OVER INFINITE"
"""


class WatchedCluster:
    """What runs, and where. ca: the file of the CA that signed all certificates.

    urls: where each process says how it stands, by its name; the front-end is `frontend`.
    """

    def __init__(self, broker: str, folder: Path) -> None:
        self.broker, self.folder = broker, folder
        self.topics = Topics(own_prefix("w"))
        authority = Authority(folder)
        self.ca, self._pair, self._context = authority.file, authority.pair(), authority.client_context()
        self.urls: dict[str, str] = {}
        self._stack = ExitStack()

    def start(self, name: str, *words: str, cluster: str = "") -> None:
        """Start a process, and wait until its log names its URL."""
        config, log = self.folder / f"{name}.toml", self.folder / f"{name}.log"
        config.write_text(
            f'[logging]\nformat = "json"\n[cluster]\nbroker = "{self.broker}"\ntopic_prefix = "{self.topics.prefix}"\n'
            f"{cluster}[engine]\ncheckpoint_interval_s = 0.5\n"
            f'[http.tls]\ncertificate = "{self._pair.certificate}"\nkey = "{self._pair.key}"\n'
            f'[[http.tokens]]\nname = "t"\nsha256 = ["{_HASH}"]\nscopes = ["*"]\n'
        )
        config.chmod(0o600)
        with log.open("wb") as said:
            process = Forked("railgun", [*words, "--config", str(config)], stdout=said, stderr=said)
        self._stack.callback(_end, process)

        def is_named() -> bool:
            assert process.poll() is None, log.read_text()
            found = re.search(r"https://127\.0\.0\.1:\d+", log.read_text())
            if found is not None:
                self.urls[name] = found[0]
            return found is not None

        awaited(is_named, name)

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """Yield a client of the front-end, with the token."""
        with httpx.Client(
            base_url=self.urls["frontend"],
            headers={"Authorization": f"Bearer {TOKEN}"},
            verify=self._context,
            trust_env=False,
            timeout=STARTS_S,
        ) as client:
            yield client

    def is_ready(self, name: str) -> bool:
        """Return whether a process is ready."""
        answer = httpx.get(f"{self.urls[name]}/readyz", verify=self._context, trust_env=False, timeout=60)
        return answer.status_code == 200

    def break_a_task(self) -> None:
        """Have the task of the stream `broken` fail on each node that has a copy."""
        transport = KafkaTransport(quick_settings(self.broker))
        transport.append(self.topics.tasks("broken", "card"), 0, [encode_event(_FAILING, "e", 1, ["c"])])
        transport.close()

    def secrets(self) -> list[str]:
        """Return what nobody may be shown: the token, its hash, and the lines of the key."""
        key = [each for each in self._pair.key.read_text().splitlines() if not each.startswith("-----")]
        return [TOKEN, _HASH, *key]

    def close(self) -> None:
        """End everything."""
        self._stack.close()


@contextmanager
def watched_cluster(broker: str, folder: Path) -> Iterator[tuple[WatchedCluster, InputTopic]]:
    """One in which events come in both ways, some of them late, twice, or refused."""
    cluster = WatchedCluster(broker, folder)
    definitions = folder / "definitions.toml"
    definitions.write_text(DEFINITIONS)
    with InputTopic(broker, cluster.topics.prefix, "payments") as topic:
        try:
            cluster.start("frontend", "frontend", "--http", "127.0.0.1:0", "--definitions", str(definitions))
            for name in ("a", "b"):
                words = ("node", "--units", "1", "--data", str(folder / name))
                cluster.start(name, *words, cluster=f'node_name = "{name}"\n')
            for name in cluster.urls:
                awaited(lambda name=name: cluster.is_ready(name), name)  # type: ignore[misc]
            yield cluster, topic
        finally:
            cluster.close()


def traffic(cluster: WatchedCluster, topic: InputTopic, client: httpx.Client, round_: int) -> None:
    """Events of every kind; callers without a token, and one that speaks no TLS."""
    now_ms = time.time_ns() // 1_000_000

    def event(number: int, ts: int = now_ms) -> dict[str, object]:
        return {"tx_id": f"{round_}-{number}", "ts": ts, "card": {"token": "c"}, "amount": 1.0}

    late = event(2, now_ms - 3_600_000)
    for sent in (event(0), event(0), event(1), late, {"ts": "never"}):
        client.post("/v1/streams/payments/events?timeout_ms=60000", json=sent)
    client.post("/v1/streams/broken/events?timeout_ms=50", json={"card": "c"})
    client.get("/v1/streams/payments/values?card=c")
    client.get("/v1/status", headers={"Authorization": "Bearer wrong"})
    plain = cluster.urls["frontend"].replace("https", "http")
    with suppress(httpx.TransportError, ssl.SSLError):
        httpx.get(plain, trust_env=False)
    topic.send([event(3), event(4), {"tx_id": f"{round_}-5", "ts": now_ms}, b"{", None])


def awaited(is_so: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + STARTS_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def _end(process: Forked) -> None:
    process.terminate()
    try:
        process.wait(_STOPS_S)
    finally:
        process.kill()
