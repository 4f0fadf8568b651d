"""Deepening (older history for a live stream) of `railgun serve`: built in its data folder, installed by the server."""

import time
from collections.abc import Mapping
from typing import Any

from railgun.client.client import Client
from railgun.client.errors import ConnectionLostError, UnreachableError
from railgun.history.build import HistoryPlan
from railgun.history.plan_file import deepening_folder, read_plan
from railgun.spark.backfill.target import BackfillRequest, DeepeningTarget
from railgun.spark.errors import HistoryError

_ASK_S = 0.2


class DeepeningOfService(DeepeningTarget):
    """A deepening for a running server.

    url: the address of the server.
    credentials: a token and files of TLS, by their names in `Client`; None if the server needs none.
    Raises ClientError, TaskError. Raises HistoryError if the request's data folder is not the server's, if the server
    cannot install the history, and if the deepening is gone before it is installed.
    """

    def __init__(
        self, request: BackfillRequest, url: str, credentials: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(request)
        self._url, self._credentials = url, dict(credentials or {})

    def plan(self) -> HistoryPlan:
        stream = self.request.stream
        with Client(self._url, **self._credentials) as client:
            before = client.deepening(stream)
            started = client.begin_deepening(stream, self.request.cut_ms)
            plan = read_plan(deepening_folder(self.request.data, stream))
            if plan is not None and plan.history == started["history"]:
                self.has_begun = before["state"] == "none"
                return plan
            if before["state"] == "none":
                client.give_up_deepening(stream)
        raise HistoryError(
            f"{self.request.data}: the server at {self._url} has another data folder; name that one, as this machine "
            "sees it, with --data"
        )

    def install(self) -> None:
        self.bring()
        try:
            self._install()
        except (UnreachableError, ConnectionLostError) as error:
            raise HistoryError(
                f"{error}; what was built is kept: run this again once the server answers"
            ) from error
        self.release()

    def _install(self) -> None:
        stream = self.request.stream
        with Client(self._url, **self._credentials) as client:
            requested = client.deepening(stream)["history"]
            client.install_deepening(stream)
            while True:
                standing = client.deepening(stream)
                if standing["state"] == "none" and standing["history"] == requested:
                    break
                if standing["state"] in ("none", "failed"):
                    reason = standing["failure"] or "it was given up"
                    raise HistoryError(f"{stream} was not deepened: {reason}")
                time.sleep(_ASK_S)

    def give_up(self) -> bool:
        with Client(self._url, **self._credentials) as client:
            if client.deepening(self.request.stream)["state"] == "none":
                return False
            client.give_up_deepening(self.request.stream)
        return True
