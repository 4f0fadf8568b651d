"""A backend without any part, for what asks none of them."""

from types import SimpleNamespace
from typing import cast

from frontend.access.masks import Masks
from frontend.backend.backend import Backend
from frontend.samples.samples import Samples
from railgun.config.settings import CONSOLE_DEFAULTS

_PARTS = {
    "scoring": None,
    "catalogue": None,
    "cluster": None,
    "deepenings": None,
    "readiness": None,
    "topic_prefix": None,
}
NO_BACKEND = cast(
    Backend,
    SimpleNamespace(
        **_PARTS,
        live_figures=SimpleNamespace(name="nobody", look_at_cluster=lambda: None, entries=dict),
        samples=Samples(CONSOLE_DEFAULTS, dict, Masks()),
    ),
)
