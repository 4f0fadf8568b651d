"""What a host does."""

from enum import StrEnum


class HostState(StrEnum):
    """recovering: until the task has come to where its log ended when it was opened."""

    CLOSED = "closed"
    OPENING = "opening"
    RECOVERING = "recovering"
    ANSWERING = "answering"
    CLOSING = "closing"
    FAILED = "failed"
