"""Scores events in a thread and waits for the answers, for both backends: the engine here, and the cluster."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from frontend.scoring.answers_in_time import CallbackWaiter, answers_in_time
from frontend.scoring.scoring import Answer
from frontend.scoring.scoring_thread import InOrder, ScoringThread, Submission
from railgun.ingest.intake import JsonText
from railgun.telemetry.recording import Recording


class InThread(ABC):
    """`score` and `submit` of `Scoring`. submission_type: the type of the submissions that the thread takes."""

    submission_type: type[Submission] = Submission

    @property
    @abstractmethod
    def recording(self) -> Recording:
        """The notes for monitoring."""

    @abstractmethod
    def _ready_thread(self) -> ScoringThread:
        """Return the thread. Raises ProblemError (503) if events cannot be taken."""

    @abstractmethod
    def _late(self, submission: Submission) -> list[Answer | None]:
        """Return the answers to a submission that was not answered in time."""

    async def score(
        self,
        stream: str,
        texts: Sequence[JsonText],
        *,
        metrics: Sequence[str] | None = None,
        timeout_ms: int,
        takes_partial: bool = False,
        reply: bool = True,
        in_order: InOrder | None = None,
    ) -> list[Answer | None]:
        thread = self._ready_thread()
        submission = self.submission_type.of(
            stream, texts, metrics, timeout_ms, takes_partial=takes_partial, reply=reply, in_order=in_order
        )
        answers = await answers_in_time(thread, submission, self.recording)
        return self._late(submission) if answers is None else answers

    def submit(
        self,
        stream: str,
        text: JsonText,
        *,
        metrics: Sequence[str] | None = None,
        timeout_ms: int,
        takes_partial: bool = False,
        tell: Callable[[Answer | BaseException | None], None],
    ) -> None:
        thread = self._ready_thread()
        waiter = CallbackWaiter(self.recording, self._late, tell)
        waiter.begin(
            thread,
            self.submission_type.of(
                stream, [text], metrics, timeout_ms, takes_partial=takes_partial, reply=True, answered=waiter
            ),
        )
