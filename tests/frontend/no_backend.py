"""A backend without any part, for what asks none of them."""

from types import SimpleNamespace
from typing import cast

from frontend.backend.backend import Backend

NO_BACKEND = cast(Backend, SimpleNamespace(scoring=None, catalogue=None, cluster=None, deepenings=None))
