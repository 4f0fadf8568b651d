"""What `help(railgun.Client)` and editors say of the calls: their own parameters and results, not the steps of them."""

import inspect
import pydoc
from typing import Any, get_type_hints

import pytest

import railgun
from railgun.client.replies import Reply

CALLS = sorted(
    name for name in vars(railgun.Client) if not name.startswith("_") and name not in ("close", "score_all")
)


def test_a_call() -> None:
    expected = (
        "(self, stream: str, event: collections.abc.Mapping[str, typing.Any], *, "
        "metrics: collections.abc.Sequence[str] | None = None, timeout_ms: int | None = None, "
        "on_timeout: Optional[Literal['error', 'partial']] = None) -> railgun.client.replies.Reply"
    )
    for kind in (railgun.Client, railgun.AsyncClient):
        assert (
            str(inspect.signature(kind.score))
            .replace("typing.Optional", "Optional")
            .replace("typing.Literal", "Literal")
            == expected
        )
        assert get_type_hints(kind.score)["return"] is Reply
        assert inspect.iscoroutinefunction(kind.score) == (kind is railgun.AsyncClient)


@pytest.mark.parametrize("name", CALLS)
def test_both_clients_say_the_same_of_each(name: str) -> None:
    blocking, awaited = getattr(railgun.Client, name), getattr(railgun.AsyncClient, name)
    signature = inspect.signature(blocking)
    assert signature == inspect.signature(awaited)
    assert next(iter(signature.parameters)) == "self"
    assert "session" not in signature.parameters
    assert all(word not in str(signature) for word in ("Generator", "Steps", "NoneType"))
    assert blocking.__doc__ == awaited.__doc__
    assert blocking.__doc__
    hints: dict[str, Any] = get_type_hints(blocking)
    assert set(hints) == {*signature.parameters, "return"} - {"self"}


@pytest.mark.parametrize("kind", [railgun.Client, railgun.AsyncClient])
def test_help(kind: type) -> None:
    text = pydoc.plain(pydoc.render_doc(kind))
    assert "score(self, stream: str, event: " in text
    assert "Send an event and return its reply" in text
    assert "Generator[" not in text
    assert "session" not in text
