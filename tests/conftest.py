"""What every test shares: how hard Hypothesis looks, that a failure can be run again, an end to what hangs,
one Kafka broker, a folder for what is temporary."""

import gc
import itertools
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from railgun.access.refusals import PERIOD_S, refusals
from railgun.broker.local import LocalBroker
from tests import counts, temporary
from tests.broker import own_topics, shared_broker
from tests.broker.quick_broker import quick_broker
from tests.counts import FIRST_SEED, examples
from tests.reports import Teller, encodable
from tests.scheduling import GroupStealing
from tests.watchdog import Watchdog

# Kept whatever the environment says: each worker, and each of a hundred processes, would compile all sources anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What is made of modules and tests stays: to look for garbage in it, again and again, is a fifth of their loading.
gc.disable()

settings.register_profile(
    "test",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=examples(40, 100),
)
settings.register_profile("torture", parent=settings.get_profile("test"), max_examples=5_000)
settings.load_profile("test")

# Clients of Kafka that are part of a cycle live on until garbage is collected, and each has keys for values of threads,
# of which a process gets 1,024. A front-end and its units in a test have about twenty.
_KAFKA_TESTS_PER_COLLECTION = 12
_WITH_KAFKA = frozenset({"kafka", "broker", "broker_of"})
_kafka_tests = itertools.count(1)

# For a test of the torture run. It may stand beside others, at any priority; `pyproject.toml` has the others' limit.
_TORTURE_TIMEOUT_S = 14_400


def _is_the_run(config: pytest.Config) -> bool:
    """Whether this process is the run itself, not a worker of it."""
    return not hasattr(config, "workerinput")


def _leaves_torture_out(config: pytest.Config) -> bool:
    return bool(config.getoption("markexpr") == "not torture")


def pytest_configure(config: pytest.Config) -> None:
    # A shell's background job ignores SIGINT, and so would the processes that tests interrupt.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(Watchdog(config))
    if _is_the_run(config):
        config.pluginmanager.register(Teller(config))
        counts.begin_run()
        temporary.begin_run()
        shared_broker.begin_run()


def pytest_report_header(config: pytest.Config) -> str | None:
    return None if _leaves_torture_out(config) else f"fresh seeds: {FIRST_SEED}={os.environ[FIRST_SEED]}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("torture"):
            # Before the marks of its module, so that this one counts.
            item.add_marker(pytest.mark.timeout(_TORTURE_TIMEOUT_S), append=False)
    items.sort(key=lambda item: item.get_closest_marker("real_time") is None)


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """No items of functions that are left out altogether: the torture run has as many as all others together."""
    if not _leaves_torture_out(collector.config):
        return None
    marks = getattr(obj, "pytestmark", ())
    return [] if any(mark.name == "torture" for mark in marks) else None


def pytest_runtest_setup() -> None:
    # Lines about refusals are so many a second, whichever test they are of; and one that says how many there were
    # besides comes when another test is run.
    refusals._began_s -= 2 * PERIOD_S
    refusals._later = lambda after_s, function: None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    # What a module's fixtures have made outlives each of its tests, and ends with the last.
    outcome = yield
    if nextitem is None or nextitem.path != item.path:
        own_topics.delete_own()
    if "kafka" in item.nodeid or not _WITH_KAFKA.isdisjoint(getattr(item, "fixturenames", ())):
        if next(_kafka_tests) % _KAFKA_TESTS_PER_COLLECTION == 0:
            gc.collect()
    return outcome


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> GroupStealing | None:
    return GroupStealing(config, log) if config.getvalue("dist") == "worksteal" else None


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, object, object]:
    return encodable((yield))


def pytest_unconfigure(config: pytest.Config) -> None:
    if _is_the_run(config):
        shared_broker.end_run()
        temporary.end_run()


@pytest.fixture(scope="session")
def kafka() -> str:
    """The address of a real broker, which all tests of the run share: `own_prefix` begins names of topics."""
    return shared_broker.address()


@pytest.fixture
def broker_of() -> Callable[[Path], LocalBroker]:
    """What makes the broker of a folder."""
    return quick_broker


@pytest.fixture
def broker(tmp_path: Path, broker_of: Callable[[Path], LocalBroker]) -> Iterator[LocalBroker]:
    """One that is nobody else's, not started yet."""
    found = broker_of(tmp_path / "a folder\u00e9")
    try:
        yield found
    finally:
        found.stop()
