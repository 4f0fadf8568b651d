"""Computes tasks with history a second time: their log behind the history, as tasks of their own.

A control record gives a task its history. Before this record the task answers from its log alone; after it, as if the
history had come first. Both are computed. The second *world* has one more task for each task with history, and a reply
is compared with the world in which its event was answered. See docs/decisions/0013; 0011 and 0012 define the order of
events in the second world.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from railgun.language.types import Kind, Type
from railgun.spark.errors import PlaceError
from railgun.spark.validation.admission import (
    ACCEPTED_MS,
    ANSWERED,
    CLOCK,
    DUPLICATE,
    LATE,
    REDELIVERED,
    TASK,
    Lateness,
)
from railgun.spark.validation.life_rules import clocks_at
from railgun.spark.validation.lifetimes import ControlHistory, Past, Setting, follow_controls
from railgun.spark.validation.partitioner_check import SURE, UNSURE
from railgun.spark.validation.redelivery import INPUT_COLUMNS
from railgun.spark.validation.run_source import EVENT_ID, EVENT_MS, NUMBER, task_column
from railgun.spark.validation.task_log_source import (
    FIRST_OFFSET,
    OFFSET_BITS,
    RECORD,
    number_of,
    place_of_number,
)

WORLD, IS_HERE = "world", "is_here"
SENT_MS, FROM_INPUT = "sent_ms", "is_from_input"
CARRIED = (RECORD, SENT_MS, FROM_INPUT)
"""Columns of events that are needed to make the second world, in addition to those for admission."""

_BASE_OFFSET = FIRST_OFFSET // 2
_SORT_MS, _SORT_ID, _SORT_NUMBER = "sort_ms", "sort_id", "sort_n"

# The columns that an event has again in the second world. All others are the same in both worlds.
_OWN = {NUMBER, TASK, SURE, UNSURE, CLOCK, ACCEPTED_MS, LATE, DUPLICATE, REDELIVERED, ANSWERED, *CARRIED}

Controls = Sequence[tuple[int, int, str]]
"""Control records: (task, number, JSON)."""


@dataclass(frozen=True, slots=True)
class Cutover:
    """How one task gets its history.

    taken: the number of the record from which on the task answers as if history had come first.
    first: the number from which on the log follows the history. Events that the task accepted before it are merged into
    the history.
    cut_ms: all events of the history are before this time.
    known_place: the place of the last change of the catalogue that is in force from the beginning of the history.
    deepens: whether a deepening gave it.
    """

    taken: int
    first: int
    cut_ms: int
    known_place: int
    deepens: bool


def cutovers(
    controls_seen: ControlHistory, controls: Controls, positions: Mapping[int, int]
) -> dict[int, Cutover]:
    """Return the cutovers by task. positions: of a deepened stream, by task, the offset up to which its task was built.

    Raises PlaceError for more than one history, and for a deepening without a known offset.
    """
    found = {}
    for task, pasts in controls_seen.pasts.items():
        if len(pasts) > 1:
            raise PlaceError(
                f"the stream was given history {len(pasts)} times: its replies can be computed again behind one alone, "
                "of which all is named; a stream is to be validated before it is deepened again"
            )
        found[task] = _cutover(task, pasts[0], controls, positions)
    return found


def _cutover(task: int, past: Past, controls: Controls, positions: Mapping[int, int]) -> Cutover:
    if not past.deepens:
        return Cutover(past.number, number_of(task, 0), past.cut_ms, past.known_place, past.deepens)
    position = positions.get(task)
    if position is None and past.begun is not None:
        position = place_of_number(past.begun)[1] + 1
    if position is None:
        raise PlaceError(
            f"partition {task}: its log does not say from which record on the deepening {past.history} began, and the "
            "task's folder has no manifest of it"
        )
    first = number_of(task, position)
    places = [
        json.loads(body).get("place", 0) for of, number, body in controls if of == task and number < first
    ]
    return Cutover(past.number, first, past.cut_ms, max(places, default=0), past.deepens)


def told_behind(
    controls: Controls, partitioner: str, tasks: int, found: Mapping[int, Cutover]
) -> ControlHistory:
    """Return the control records of the second world, whose tasks have the numbers from `tasks` on.

    Changes that are in force from the beginning of the history are moved before it.
    """
    moved = []
    for task, number, body in controls:
        if task in found:
            offset, place = place_of_number(number)[1], json.loads(body).get("place")
            if place is not None and place <= found[task].known_place:
                offset += FIRST_OFFSET
            moved.append((task + tasks, number_of(task + tasks, offset), body))
    made = follow_controls(moved, partitioner)
    made.leading = dict.fromkeys(made.settings, _BASE_OFFSET)
    return made


def known_setting(controls_seen: ControlHistory, found: Mapping[int, Cutover], tasks: int) -> Setting:
    """Return the stream's definition when it got its history. controls_seen: of the second world."""
    task = next(iter(found)) + tasks
    return [each for each in controls_seen.settings[task] if place_of_number(each.number)[1] < _BASE_OFFSET][
        -1
    ]


def both(here: ControlHistory, behind: ControlHistory) -> ControlHistory:
    """Return the control records of the tasks of both worlds."""
    made = ControlHistory(
        dict(here.lives), {**here.settings, **behind.settings}, {**here.leading, **behind.leading}
    )
    for added, life in behind.lives.items():
        known = made.lives.get(added)
        made.lives[added] = life if known is None else replace(known, spans={**known.spans, **life.spans})
    return made


def floors(
    events: DataFrame, here: ControlHistory, behind: ControlHistory, found: Mapping[int, Cutover], tasks: int
) -> dict[int, list[Lateness]]:
    """Return the settings of lateness in the second world, by task.

    An event that was late when a stream was deepened stays late there, whatever the lateness was before.

    events: admitted events of the first world.
    """
    changes = {task: list(each) for task, each in behind.lateness_changes().items()}
    deepened = {task: cutover for task, cutover in found.items() if cutover.deepens}
    before = {
        task: [each for each in here.settings[task] if each.number < cutover.first]
        for task, cutover in deepened.items()
    }
    points = {each.number for settings in before.values() for each in settings}
    clocks = clocks_at(events, sorted(points | {each.first for each in deepened.values()}))
    for task, settings in before.items():
        first = deepened[task].first
        ends = [each.number for each in settings[1:]] + [first]
        made = [
            clocks[number] - each.stream.lateness_ms
            for each, end in zip(settings, ends)
            for number in (each.number, end)
            if number in clocks
        ]
        if made:
            there = number_of(task + tasks, place_of_number(first)[1])
            stream = settings[-1].stream
            change = replace(Lateness.of(there, stream), floor_ms=max(made))
            # The next record of the log has the same number, and its setting has to come after this one.
            changes[task + tasks] = sorted([change, *changes[task + tasks]], key=lambda each: each.number)
    return changes


class Behind:
    """The events of a partitioner's tasks in the second world.

    shape: the columns that events of the log and of history have in addition to EVENT_ID and EVENT_MS.
    values: SQL of these columns for rows of history.
    """

    def __init__(
        self,
        found: Mapping[int, Cutover],
        tasks: int,
        id_type: Type,
        shape: Sequence[str],
        values: Sequence[str],
    ) -> None:
        self._found, self._tasks, self._shape, self._values = found, tasks, shape, values
        self._sort_id = f"CAST({EVENT_ID} AS BIGINT)" if id_type.kind is Kind.LONG else EVENT_ID

    def events(self, here: DataFrame, history: DataFrame, place: int) -> DataFrame:
        """Return the events to admit in the second world.

        here: admitted events of the first world, with CARRIED.  history: of `HistoryInput.events`.
        place: of the partitioner in the stream's list.
        """
        log = here.where(f"{NUMBER} >= {self._of(lambda each: each.first)} AND NOT {REDELIVERED}")
        taken, deepens = self._of(lambda each: each.taken), self._of(lambda each: int(each.deepens))
        # A redelivered record that follows the history may get the reply that its first delivery gets there.
        again = f"({deepens} = 0 AND {FROM_INPUT})"
        others = [name for name in here.columns if name not in _OWN]
        # The first world has found the redelivered records already, because they depend on the log alone.
        kept = log.selectExpr(
            f"{NUMBER} + {self._tasks << OFFSET_BITS}L AS {NUMBER}",
            f"CAST({TASK} + {self._tasks} AS INT) AS {TASK}",
            f"{SENT_MS} AS {EVENT_MS}",
            f"CASE WHEN {ANSWERED} THEN 0L ELSE -1L END AS {INPUT_COLUMNS[0]}",
            f"0L AS {INPUT_COLUMNS[1]}",
            f"CASE WHEN {ANSWERED} THEN 1L ELSE 0L END AS {INPUT_COLUMNS[2]}",
            f"{SURE} AND {NUMBER} > {taken} AS {SURE}",
            f"{UNSURE} AND ({NUMBER} > {taken} OR {again}) AS {UNSURE}",
            f"{NUMBER} > {taken} AS {IS_HERE}",
            *others,
        )
        return kept.unionByName(self._base(here, history, place), allowMissingColumns=True)

    def _base(self, here: DataFrame, history: DataFrame, place: int) -> DataFrame:
        """Return the events before the log: the history, and the events that a deepened task had accepted."""
        at = task_column(place)
        rows = history.where(f"{EVENT_MS} < {self._of(lambda each: each.cut_ms, at)}").selectExpr(
            f"{at} AS {TASK}",
            EVENT_ID,
            EVENT_MS,
            RECORD,
            *self._values,
            f"{EVENT_MS} AS {_SORT_MS}",
            f"{self._sort_id} AS {_SORT_ID}",
            f"0L AS {_SORT_NUMBER}",
        )
        first, cut = self._of(lambda each: each.first), self._of(lambda each: each.cut_ms)
        is_before = f"{ACCEPTED_MS} < {cut}"
        own = here.where(f"{NUMBER} < {first} AND {ACCEPTED_MS} IS NOT NULL").selectExpr(
            TASK,
            EVENT_ID,
            f"{SENT_MS} AS {EVENT_MS}",
            RECORD,
            *self._shape,
            f"CASE WHEN {is_before} THEN {SENT_MS} ELSE {cut} END AS {_SORT_MS}",
            f"CASE WHEN {is_before} THEN {self._sort_id} END AS {_SORT_ID}",
            f"CASE WHEN {is_before} THEN 0L ELSE {NUMBER} END AS {_SORT_NUMBER}",
        )
        order = Over.partitionBy(TASK).orderBy(_SORT_MS, _SORT_ID, _SORT_NUMBER, RECORD)
        numbered = rows.unionByName(own).withColumn("at", F.row_number().over(order))
        return numbered.selectExpr(
            f"{number_of(self._tasks, _BASE_OFFSET)}L + {TASK} * {1 << OFFSET_BITS}L + at AS {NUMBER}",
            f"CAST({TASK} + {self._tasks} AS INT) AS {TASK}",
            EVENT_ID,
            EVENT_MS,
            *(f"{value}L AS {name}" for value, name in zip((-1, 0, 0), INPUT_COLUMNS)),
            f"false AS {SURE}",
            f"false AS {UNSURE}",
            f"false AS {IS_HERE}",
            *self._shape,
        )

    def joined(self, here: DataFrame, behind: DataFrame) -> DataFrame:
        """Return the admitted events of both worlds, without those of the first world that were not answered in it."""
        taken = self._of(lambda each: each.taken)
        answered = here.where(f"coalesce({NUMBER} < {taken}, true)").drop(*CARRIED)
        answered = answered.withColumns({WORLD: F.lit(0), IS_HERE: F.lit(True)})
        return answered.unionByName(behind.withColumn(WORLD, F.lit(1)))

    def _of(self, figure: Callable[[Cutover], int], task: str = TASK) -> str:
        """SQL of a number of the cutover of an event's task; null if the task has no history."""
        cases = " ".join(f"WHEN {each} THEN {figure(cutover)}L" for each, cutover in self._found.items())
        return f"(CASE {task} {cases} END)"


def is_base(number: str = NUMBER) -> str:
    """SQL: whether an event is before its log."""
    offset = f"({number} & {(1 << OFFSET_BITS) - 1}L)"
    return f"{offset} < {-FIRST_OFFSET}L"
