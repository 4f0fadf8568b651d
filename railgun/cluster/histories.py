"""Tells which nodes cannot make a copy of a task that has history (events from before its log).

Such a copy reads the log from its beginning, and goes on with the folder that was built with the history. It needs that
folder in `backfill` of its node's data folder. See railgun/history/FORMAT.md.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from railgun.catalog.task_key import TaskKey
from railgun.cluster.records import NodeRecord
from railgun.wording import counted

Histories = Mapping[tuple[str, int], str]
"""The id of the history that a stream's tasks have got last, by the stream's name and `created`."""

Unable = Mapping[TaskKey, frozenset[str]]
"""The nodes that cannot make a copy of a task, by task. Tasks that all nodes can make are left out."""

# The most names that are shown.
_SHOWN = 3


def nodes_without(histories: Histories, nodes: Iterable[NodeRecord]) -> dict[tuple[str, int], frozenset[str]]:
    """Return by stream the nodes that report that they lack the folders built with its history."""
    said = [(record.name, record.histories) for record in nodes if record.histories is not None]
    by_history = {
        history: frozenset(name for name, has in said if history not in has) for history in histories.values()
    }
    return {stream: by_history[history] for stream, history in histories.items()}


def remarks(unable: Unable, histories: Histories, among: Collection[str]) -> Iterator[str]:
    """Yield for each stream why nodes can have no copy of its tasks, and what to do. among: the nodes that count."""
    found: dict[tuple[str, int], tuple[set[str], int]] = {}
    for task, nodes in unable.items():
        if lacking := nodes & set(among):
            names, tasks = found.get((task.stream, task.created), (set(), 0))
            found[task.stream, task.created] = names | lacking, tasks + 1
    for stream, (names, tasks) in sorted(found.items()):
        known = sorted(names)
        shown = ", ".join(known[:_SHOWN]) + (", …" if len(known) > _SHOWN else "")
        yield (
            f"{counted(tasks, 'task')} of {stream[0]} cannot have a copy on {shown}: history {histories[stream]} lies "
            f"before the log, and backfill/{stream[0]} in that data folder lacks it or a part of it; mount or copy it "
            "there"
        )


def irreplaceable(histories: Histories, nodes: Iterable[NodeRecord]) -> Iterator[str]:
    """Yield a line for each stream of whose tasks no node could make a copy. nodes: those that live."""
    live = list(nodes)
    for stream, without in sorted(nodes_without(histories, live).items()):
        if live and len(without) == len(live):
            yield (
                f"no node that lives has history {histories[stream]} in backfill/{stream[0]} of its data folder: a "
                f"copy of a task of {stream[0]} that loses its data cannot be made again; put the folder back"
            )
