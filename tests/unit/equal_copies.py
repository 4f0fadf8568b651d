"""Whether copies of tasks have equal data, once all have come to the end of their logs."""

from collections.abc import Sequence

from railgun.catalog.task_key import TaskKey
from tests.unit.local_units import LocalUnit, awaited


def check_equal(units: Sequence[LocalUnit], tasks: int) -> None:
    """Units that each have a copy of all tasks have equal ones. They do nothing any more afterwards."""

    def positions() -> list[dict[TaskKey, int]]:
        return [{key: host.position for key, host in unit.loop.hosts.items()} for unit in units]

    awaited(lambda: all(unit.loop.is_ready for unit in units))
    awaited(lambda: all(each == positions()[0] for each in positions()))
    for unit in units:
        unit.halt()
    digests = [{key: host.task.digest() for key, host in unit.loop.hosts.items()} for unit in units]
    assert len(digests[0]) == tasks
    assert all(each == digests[0] for each in digests)
