"""Requests made up from the OpenAPI description, right and wrong ones: no defect shows."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.frontend.serving import Server


def play(server: Server, examples: int) -> tuple[int, int]:
    """Requests of every route: how many routes there are, and how many requests were made."""
    # It takes seconds to load, and each worker has this module.
    import schemathesis
    from schemathesis import GenerationMode, checks

    wanted: list[Any] = [
        checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    sent = 0
    schema = schemathesis.openapi.from_url(f"{server.service.url}/openapi.json")
    operations = [each.ok() for each in schema.get_all_operations()]
    for operation in operations:
        strategies = [operation.as_strategy(generation_mode=mode) for mode in GenerationMode]

        @given(case=st.one_of(strategies))
        @settings(
            max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None
        )
        def played(case: Any) -> None:
            nonlocal sent
            sent += 1
            case.call_and_validate(checks=wanted)

        played()
    return len(operations), sent


def test_requests(shared: Server) -> None:
    routes, sent = play(shared, 12)
    assert routes == 35
    assert sent >= 12 * routes // 2


@pytest.mark.torture
def test_ten_thousand_requests(shared: Server) -> None:
    routes, sent = play(shared, 1_100)
    assert routes == 35
    # Some routes have few different requests.
    assert sent >= 10_000
