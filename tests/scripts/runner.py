"""Runs a script on an executor and collects what is not as expected."""

from collections.abc import Iterator
from typing import Any

from tests.oracle.compare import differences
from tests.scripts.executor import Executor, reply_of
from tests.scripts.script import Action, Script


def complaints(script: Script, executor: Executor, reference: Executor | None = None) -> list[str]:
    """What goes wrong, a line each with the script's line number; empty where all is well.

    With a reference (the oracle) every reply must also equal its reply in full.
    """
    executor.apply(script.definitions, script.stream)
    if reference is not None:
        reference.apply(script.definitions, script.stream)
    found: list[str] = []
    for action in script.actions:
        outcome = reply_of(executor, action.step)
        found += [f"line {action.line}: {text}" for text in _unexpected(action, outcome)]
        if reference is not None:
            expected = reply_of(reference, action.step)
            if isinstance(expected, dict) and isinstance(outcome, dict):
                found += [f"line {action.line}: oracle: {text}" for text in differences(expected, outcome)]
    return found


def _unexpected(action: Action, outcome: dict[str, Any] | str | None) -> Iterator[str]:
    expectation = action.expectation
    refusal_expected = expectation is not None and expectation.refused
    if isinstance(outcome, str):
        if not refusal_expected:
            yield outcome
    elif refusal_expected:
        yield f"should have been refused, got {outcome}"
    elif expectation is not None:
        yield from expectation.complaints(outcome) if outcome is not None else ["gives no reply"]
