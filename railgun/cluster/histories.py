"""Tells which nodes cannot make a copy of a task that has history (events from before its log).

Such a copy reads the log from its beginning, and goes on with the folder that was built with the history. It needs that
folder in `backfill` of its node's data folder. See railgun/history/FORMAT.md.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from railgun.catalog.task_key import TaskKey
from railgun.cluster.records import NodeRecord
from railgun.wording import counted, listed

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


def remarks(
    unable: Unable, histories: Histories, among: Collection[str]
) -> Iterator[tuple[list[TaskKey], str]]:
    """Yield for each stream the tasks of which nodes can have no copy, and why, and what to do.

    among: the nodes that count.
    """
    found: dict[tuple[str, int], tuple[set[str], list[TaskKey]]] = {}
    for task, nodes in unable.items():
        if lacking := nodes & set(among):
            names, tasks = found.setdefault((task.stream, task.created), (set(), []))
            names |= lacking
            tasks.append(task)
    for stream, (names, tasks) in sorted(found.items()):
        named, nodes_named = listed([str(task) for task in tasks], _SHOWN), listed(sorted(names), _SHOWN)
        text = (
            f"{counted(len(tasks), 'task')} of {stream[0]} ({named}) cannot have a copy on {nodes_named}: history "
            f"{histories[stream]} lies before the log, and backfill/{stream[0]} in that data folder lacks it or a part "
            "of it; mount or copy it there"
        )
        yield tasks, text


def irreplaceable(histories: Histories, nodes: Iterable[NodeRecord]) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield the streams of whose tasks no node could make a copy, each with what to do. nodes: those that live."""
    live = list(nodes)
    for stream, without in sorted(nodes_without(histories, live).items()):
        if live and len(without) == len(live):
            text = (
                f"no node that lives has history {histories[stream]} in backfill/{stream[0]} of its data folder: a "
                f"copy of a task of {stream[0]} that loses its data cannot be made again; put the folder back"
            )
            yield stream, text
