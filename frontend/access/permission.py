"""What a caller who was let in may go on doing: so many events per second, and lines as long as the token is good."""

from http import HTTPStatus

from frontend.problems import ProblemError, problem, refused
from railgun.access.guard import AccessError, Caller, Guard
from railgun.access.routes import RouteMatch

CHECK_S = 1.0
"""How often a request that runs for long is decided about again."""


def check_rate(guard: Guard, caller: Caller, events: int) -> None:
    """Count events of a request. Raises ProblemError (429) where its caller has sent as many as they may."""
    wait_s = guard.wait_s(caller, events)
    if wait_s > 0:
        limit = f"the token {caller.name} may send {caller.limit_per_s} events per second"
        headers = [(b"retry-after", b"%d" % max(1, -(-wait_s // 1)))]
        raise ProblemError(
            problem(HTTPStatus.TOO_MANY_REQUESTS, f"{limit}; send these again a little later"), headers
        )


class PermissionEndedError(ProblemError):
    """A caller was let in, and may not go on."""


class Permission:
    """A caller's permission to go on with a request that runs for long. found: its row."""

    def __init__(self, guard: Guard, caller: Caller, found: RouteMatch) -> None:
        self._guard, self._caller, self._found = guard, caller, found

    def check(self) -> None:
        """Go on by the token's scopes and limit of now.

        Raises PermissionEndedError (401, 403) if it expired, was replaced, or lost its scope.
        """
        try:
            self._caller = self._guard.check_again(self._caller, self._found)
        except AccessError as error:
            ended = refused(error)
            raise PermissionEndedError(ended.problem, ended.headers) from None

    def as_told(self, error: ProblemError) -> ProblemError:
        """A problem as the caller may be told of it."""
        return error.as_told_to(self._caller)

    def wait_s(self, events: int) -> float:
        """Count events: 0, or the seconds until they may be sent."""
        return self._guard.wait_s(self._caller, events)
