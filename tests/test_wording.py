"""How errors of the system are put into words."""

import errno

import pytest

from railgun.wording import error_text


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
