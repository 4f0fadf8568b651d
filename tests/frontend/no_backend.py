"""A backend without any part, for what asks none of them."""

from types import SimpleNamespace
from typing import cast

from frontend.backend.backend import Backend

_PARTS = {
    "scoring": None,
    "catalogue": None,
    "cluster": None,
    "deepenings": None,
    "readiness": None,
    "topic_prefix": None,
}
NO_BACKEND = cast(
    Backend, SimpleNamespace(**_PARTS, live_figures=SimpleNamespace(look_at_cluster=lambda: None))
)
