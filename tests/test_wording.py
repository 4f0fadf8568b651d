"""How numbers and errors of the system are put into words."""

import errno

import pytest

from railgun.wording import error_text, listed, number_text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            PermissionError(errno.EPERM, "Not permitted", "/d/lock"),
            "/d/lock: Not permitted; check its permissions",
        ),
        (OSError(errno.ENOSPC, "No space left"), "No space left; free space, then run it again"),
        (OSError(errno.EIO, "Input/output error", "/d"), "/d: Input/output error"),
        (OSError("the broker is away"), "the broker is away"),
        (ValueError("no number"), "no number"),
    ],
)
def test_errors_of_the_system_have_their_place_and_a_remedy(error: Exception, text: str) -> None:
    assert error_text(error) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e6, "1,000,000"),
        (1_234_567.8, "1,234,568"),
        (999.96, "1,000"),
        (12.3456, "12.35"),
        (20.0, "20"),
        (0.00001, "0.00001"),
        (0.0, "0"),
    ],
)
def test_numbers_are_written_as_people_write_them(number: float, text: str) -> None:
    assert number_text(number) == text


def test_names_that_are_not_shown_are_counted() -> None:
    assert listed(["a", "b"], 2) == "a, b"
    assert listed(["a", "b", "c"], 2) == listed(["a", "b"], 2, 3) == "a, b and 1 more"
