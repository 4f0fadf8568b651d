"""What the tests of leading nodes share."""

from collections.abc import Iterator

import pytest

from tests.node.leader.leading_nodes import Nodes


@pytest.fixture
def nodes(kafka: str) -> Iterator[Nodes]:
    """A cluster without nodes."""
    with Nodes(kafka) as opened:
        yield opened
