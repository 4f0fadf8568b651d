"""One server with tokens for the tests of a module."""

from collections.abc import Iterator

import pytest

from tests.frontend.access.callers import guarded
from tests.frontend.serving import Server, load_kernels


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with (
        pytest.MonkeyPatch.context() as patch,
        guarded(tmp_path_factory.mktemp("live") / "data", patch) as made,
    ):
        load_kernels()
        yield made
