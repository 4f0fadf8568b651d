"""The bodies of the cluster's routes as OpenAPI shows them."""

from pydantic import BaseModel, Field

from frontend.backend.models import LatelyNoted


class EndedUnit(BaseModel):
    """A unit whose process has ended by itself within the last 10 minutes, and was started again.

    It is left out sooner if its node's process in the group of nodes is started again.
    """

    unit: int
    times: int = Field(description="how often it has ended in this time")
    last_ms: int = Field(description="when it did the last time, by the clock of its node")
    error: str = Field(description="why it did then, in one line")
    text: str = Field(description="all of that in one line")


class ClusterNode(BaseModel):
    """A node of the cluster."""

    name: str
    state: str = Field(description="draining, drained; else live, or away: it does not take part now")
    alive: bool = Field(description="whether it takes part now; it may be drained while it does not")
    rack: str = Field(description="empty: it names none")
    units: int
    active: int = Field(description="copies on it that answer")
    copies: int = Field(description="copies that are planned on it")
    release: str
    host: str
    ended: list[EndedUnit] | None = Field(
        None, description="units that have ended by themselves lately; left out where there is none"
    )
    heard_ms: int | None = Field(
        None, description="while it is away: when a unit of it was heard last, by the clock of the node"
    )
    units_go_on: bool | None = Field(
        None,
        description="true while it does not take part though its units go on: its process that takes part in the "
        "group is started again, or does not reach the broker; left out otherwise",
    )
    refused: str | None = Field(None, description="why the last order to drain it was refused")
    lost: int | None = Field(None, description="tasks that get no copy on it until it is started again")
    was_drained: bool | None = Field(
        None, description="in the answer to `undrain`: whether it was to be emptied"
    )
    waits: list[str] | None = Field(None, description="while it is draining: what that waits for")


class Fetching(BaseModel):
    """The way of a copy's data from another node."""

    donor: str | None = Field(
        description="the copy that it comes from, as node/unit; null while it waits for its turn"
    )
    fetched_bytes: int
    total_bytes: int = Field(description="0: not known yet")
    hashed_bytes: int = Field(description="hashed by the donor and here, before bytes move")


class Copy(BaseModel):
    """A copy of a task."""

    node: str
    unit: int
    state: str | None = Field(
        description="answering, silent, behind, failed or closed; null: it does not report"
    )
    lag: int | None = Field(description="records of its log that it has not processed")
    planned: bool = Field(description="false: the plan does not name it any more")
    failure: str | None = Field(None, description="of a copy that has failed: why")
    fetching: Fetching | None = Field(None, description="while its data comes from another node")


class TaskLog(BaseModel):
    """The log of a task, and what its copies need of it."""

    start: int = Field(description="the first offset that the broker still has")
    needed: int | None = Field(
        description="the least position of the copies' last durable checkpoints: the log is needed from here on"
    )
    needed_by: str | None = Field(description="the copy whose checkpoint that is, as node/unit")
    left_ms: int | None = Field(
        description="the broker keeps the record at `needed` for at least this long; null: for ever, or not known"
    )
    retention_ms: int | None = Field(description="how long the broker keeps records; null: for ever")


class Task(BaseModel):
    """A task, and its copies in order of preference."""

    stream: str
    partitioner: str
    partition: int
    copies: list[Copy]
    log: TaskLog | None = Field(description="null while the broker has not said where it begins")
    wrong: list[str] | None = Field(
        None, description="what the warnings say of it; left out where they say nothing"
    )


class Cluster(BaseModel):
    """The cluster as it stands."""

    leader: str | None = Field(description="the node that leads")
    plan: int = Field(description="the number of the newest plan")
    copies: int = Field(description="of each task, as far as there are nodes")
    moves: int = Field(description="copies that the plan still has to make or to drop")
    warnings: list[str] = Field(description="what somebody should see to")
    behind: int = Field(description="copies that catch up")
    unheard: int = Field(description="copies that are planned and do not report")
    lately: LatelyNoted
    nodes: list[ClusterNode]
    tasks: list[Task]


class MadeCopy(BaseModel):
    """A copy that would be made."""

    stream: str
    partitioner: str
    partition: int
    node: str
    unit: int
    bytes: int = Field(description="of the data of another copy, about")
    source: str = Field(description="where its data would come from: own folder, copies, log or nothing")
    donors: list[str] | None = Field(None, description="of copies: those that could give it, as node/unit")


class PlannedNode(BaseModel):
    """A node as it would be."""

    name: str
    rack: str
    units: int
    active: int
    copies: int


class Consequences(BaseModel):
    """What a change would move."""

    what_if: str
    moves: int = Field(description="tasks that another copy would answer")
    made: list[MadeCopy]
    dropped: int = Field(description="copies that would go")
    bytes: int = Field(description="of all copies that would be made, about")
    not_made: list[str] = Field(
        description="which copies could not be made, and why; and which nodes are away"
    )
    nodes: list[PlannedNode]


class Drain(BaseModel):
    """How a node is emptied."""

    fewer_copies: bool = Field(False, description="let tasks have fewer copies where too few nodes are left")


class OneTask(BaseModel):
    """Names a task."""

    stream: str
    partitioner: str
    partition: int


class AcceptedCut(OneTask):
    """What a task goes on without."""

    outcome: str = Field(
        description="`cut`: it goes on without records at the end of its log; `begun_anew`: it begins anew in another "
        "topic; `accepted_before`: an earlier order stands, and there is nothing more to accept"
    )
    offset: int = Field(description="the first record of its log that was lost, or at which it begins anew")
    records: int = Field(description="how many records were answered and are lost")


class GapOrder(OneTask):
    """Names a task that is to go on behind a gap of its log."""

    from_: str = Field(
        "", alias="from", description="the node with whose state it goes on; empty: that with the newest one"
    )
    first: int | None = Field(
        None, description="`first` of a dry run, with its `offset`: refused if it is another gap by now"
    )
    offset: int | None = None
    dry_run: bool = Field(False, description="only say what would be lost")


class AcceptedGap(OneTask):
    """A gap of a task's log, and the state with which the task goes on behind it."""

    outcome: str = Field(
        description="`crossed`: the task goes on behind the gap; `would_cross`: it would, without `dry_run`; "
        "`accepted_before`: an earlier order about this gap stands"
    )
    node: str = Field(description="the node whose state is used")
    first: int = Field(description="the first record that is lost: the state needs it next")
    offset: int = Field(description="the first record that is left")
    records: int = Field(description="how many records are lost")
    clock_ms: int | None = Field(
        description="the newest event in the state, ms since 1970; null: it has none"
    )
    gap_ms: int = Field(
        description="no event that is lost is later; windows that begin at or before this time are partial"
    )
