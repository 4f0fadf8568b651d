"""The tests of plans catch mistakes that are planted into the product for a while."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import pytest

from railgun.cluster.copies import CopyName
from railgun.cluster.lost_copies import Losses
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.plan import Copies, LostCopy, Plan
from railgun.cluster.progress import Progress, _Nearness
from railgun.cluster.reports import CopyStatus
from railgun.cluster.steps import _Steps
from railgun.cluster.view import TaskView
from tests.cluster import test_histories, test_lost_copies, test_steps


def _cluster() -> test_lost_copies.Cluster:
    made = test_lost_copies.Cluster()
    made.pass_s(3, {"node-1": test_lost_copies.WELL, "node-2": test_lost_copies.SILENT})
    return made


def test_activity_that_is_given_to_an_empty_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of a target count as caught up once they are planned, and as answering: those before them go."""
    monkeypatch.setattr(
        _Steps, "_has_caught_up", lambda self, task, copies, copy: any(each.copy == copy for each in copies)
    )
    monkeypatch.setattr(_Steps, "_answers", lambda self, task, copy: True)
    with pytest.raises(AssertionError):
        test_steps.test_a_node_is_drained_without_a_copy_less_at_any_time(2)


def test_poison_that_wanders(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that failed by an error of its task is lost as any other is."""
    right = Losses.find

    def find(
        self: Losses,
        planned: Copies,
        before: Mapping[str, LostCopy],
        unable: Collection[str],
        ill_s: Callable[[CopyName], float],
        has_failed: Callable[[CopyName], bool],
    ) -> dict[str, LostCopy]:
        forgiving = {node: replace(each, has_failed=False) for node, each in before.items()}
        return right(self, planned, forgiving, unable, ill_s, lambda copy: False)

    monkeypatch.setattr(Losses, "find", find)
    with pytest.raises(ValueError, match="too many values"):
        test_lost_copies.test_an_error_of_the_task_does_not_wander(_cluster())


def test_a_rebuild_that_is_placed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only whether a copy could answer counts, not that it gets nearer: a long rebuild, or a fill, is begun anew."""
    monkeypatch.setattr(Progress, "well_s", lambda self, task, copy: self._well_s.get((task, copy), 0.0))
    with pytest.raises(AssertionError):
        test_lost_copies.test_one_that_gets_nearer_is_not_lost(_cluster())


def test_a_copy_that_is_placed_where_it_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks whether a node has what was built with the history of a task."""
    monkeypatch.setattr(ObservedCluster, "unable", lambda self, tasks, plan, now_s: {})
    for test in (
        test_histories.test_a_copy_is_made_where_the_history_is_once_it_is_there,
        test_histories.test_a_copy_is_not_lost_that_no_other_node_could_make,
        test_histories.test_a_node_that_lost_its_folder_gets_its_copy_only_with_the_history,
    ):
        with pytest.raises(AssertionError):
            test(test_histories.Cluster())


def test_a_fetch_that_is_placed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that come from another node do not count: a copy with much data is never done."""
    monkeypatch.setattr(_Nearness, "hear_fetch", lambda self, fetching: False)
    for test in (
        test_lost_copies.test_a_copy_that_fetches_is_not_lost_while_bytes_come,
        test_lost_copies.test_one_that_waits_for_its_turn_is_not_lost_while_another_of_its_node_fetches,
    ):
        with pytest.raises(AssertionError):
            test(_cluster())


def test_a_queue_that_is_placed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that waits for its turn to fetch counts as one that gets nowhere."""
    monkeypatch.setattr(CopyStatus, "is_waiting", False)
    with pytest.raises(AssertionError):
        test_lost_copies.test_one_that_waits_for_its_turn_is_not_lost_while_another_of_its_node_fetches(
            _cluster()
        )


def test_a_limit_of_moves_that_one_full_node_uses_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit counts for all nodes together: a node that joins gets nothing while another one is filled."""
    right = _Steps._takes_move

    def takes_move(self: _Steps, task: TaskView, node: str) -> bool:
        return min(self._moves_left.values()) > 0 and right(self, task, node)

    monkeypatch.setattr(_Steps, "_takes_move", takes_move)
    with pytest.raises(AssertionError):
        test_steps.test_nodes_are_filled_side_by_side()


def test_disks_that_are_all_filled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All copies of a node with another data folder are made at once."""
    monkeypatch.setattr(_Steps, "_takes_move", lambda self, task, node: True)
    with pytest.raises(AssertionError):
        test_steps.test_a_node_with_another_data_folder_is_filled_as_far_as_the_limit_allows()


def test_a_copy_that_is_lost_before_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy in a data folder that its node does not have any more has had its time."""
    monkeypatch.setattr(ObservedCluster, "_note_planned", _note_planned_once)
    with pytest.raises(AssertionError):
        test_lost_copies.test_a_copy_has_its_time_from_when_the_plan_names_the_folder_that_its_node_has(
            _cluster()
        )


def _note_planned_once(self: ObservedCluster, plan: Plan, now_s: float) -> None:
    """Keep the time of a copy's name, whatever its folder is."""
    for name, copies in plan.copies.items():
        for each in copies:
            self._planned.setdefault((name, each.copy), (each.folder, now_s))
