"""The policy by which a cluster places and follows copies. The leader writes its own into the plan for all nodes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterPolicy:
    """The settings of `[cluster]` that decide about copies.

    copies: the number of copies of each task.
    takeover_s: a copy that is silent for this long answers no more; another does.
    replace_after_s: a node that has been away for this long is replaced.
    moves_limit: how many copies are made on a node at once.
    """

    copies: int = 2
    takeover_s: float = 1.0
    replace_after_s: float = 300.0
    moves_limit: int = 4
