"""Models of answers that several rooms have, for OpenAPI."""

from pydantic import BaseModel, Field


class FrontEnd(BaseModel):
    """The process that answers. Its counts and its memory begin with it."""

    name: str
    started_ms: int


class Happening(BaseModel):
    """What has happened in the cluster, once or again and again within 10 minutes."""

    kind: str = Field(
        description="node_away: it was when the front-end began to look; node_new, node_back, node_started; "
        "node_stopped: its copies were closed, node_lost: they were not, node_apart: its units went on, node_gone: "
        "not known how; unit_ended, unit_silent, unit_heard again; copy_failed, copy_well, copy_made; not_looked: "
        "what happened meanwhile came late"
    )
    at_ms: int = Field(description="when it was noted last, by the clock of the front-end, ms since 1970")
    first_ms: int = Field(description="when it was noted first")
    times: int = Field(description="how often it has happened")
    text: str = Field(description="one line, with the last error")


class LatelyNoted(BaseModel):
    """What the front-end that answers has noted of its cluster."""

    since_ms: int = Field(description="when that front-end began to look, ms since 1970")
    looked_ms: int | None = Field(description="when it has looked last; null: not yet")
    overdue: bool = Field(
        description="whether that is longer ago than it should be, as while the broker does not answer: what has "
        "happened since is not known"
    )
    entries: list[Happening] = Field(description="the last 100, the newest first")
