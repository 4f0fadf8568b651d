"""Models of answers that several rooms have, for OpenAPI."""

from pydantic import BaseModel


class FrontEnd(BaseModel):
    """The process that answers. Its counts and its memory begin with it."""

    name: str
    started_ms: int
