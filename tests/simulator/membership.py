"""The group of nodes as a broker keeps it: who was heard lately, and the one of them that leads."""

from collections.abc import Callable

from railgun.messaging.errors import TransportUnavailableError

SESSION_S = 3.0


class Group:
    """now: returns the virtual time in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._heard_s: dict[str, float] = {}
        self.leader: str | None = None

    def hear(self, name: str) -> None:
        """Note a heartbeat, and let those go that were not heard."""
        now_s = self._now()
        self._heard_s[name] = now_s
        for gone in [each for each, reported_s in self._heard_s.items() if now_s - reported_s > SESSION_S]:
            self.leave(gone)
        if self.leader is None:
            self.leader = min(self._heard_s)

    def leave(self, name: str) -> None:
        """Let a member go."""
        self._heard_s.pop(name, None)
        if self.leader == name:
            self.leader = None

    def names(self) -> set[str]:
        """Return the members."""
        return set(self._heard_s)


class SimulatedMembership:
    """See `GroupMembership`. is_cut: returns whether the broker is out of reach."""

    def __init__(self, group: Group, name: str, is_cut: Callable[[], bool]) -> None:
        self._group, self._name, self._is_cut = group, name, is_cut
        self.leads = False

    def poll(self, timeout_s: float) -> None:
        # A member that cannot reach the broker does not hear that it was shut out.
        if not self._is_cut():
            self._group.hear(self._name)
            self.leads = self._group.leader == self._name

    def members(self) -> set[str]:
        if self._is_cut() or self._name not in self._group.names():
            raise TransportUnavailableError(self._name, "who the members are is not known", "Try again")
        return self._group.names()
