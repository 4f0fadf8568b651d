"""Measures peers one after the other, and keeps what is known in a file, so that a run can be resumed."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench.children import ChildFailedError
from bench.peers.catalog import Peer
from bench.peers.measuring import (
    Figures,
    TooSlowError,
    WrongValuesError,
    boundary_shift_ms,
    disorder,
    measured,
)
from bench.peers.results import known
from bench.peers.work import Work
from bench.report import Report

_SHIFT = "boundary_shift_ms"


class KeptRun:
    """The measurements of one report's scale and number of runs.

    folder: of the file.  beside: what is measured beside every peer.  again: measure what is known, too.
    """

    def __init__(self, report: Report, folder: Path, beside: Sequence[Peer], again: bool) -> None:
        self._report, self._folder, self._beside, self._again = report, folder, beside, again
        self._kept = known({"runs": report.runs, "scale": report.scale}, folder)

    def measure(self, peer: Peer, works: Sequence[Work]) -> None:
        """Measure a peer, or say why not. Raises ChildFailedError if a part of it failed; the others are measured."""
        if why := peer.missing():
            self._skip(peer.name, why)
            return
        peers = [peer, *(self._beside if peer not in self._beside else ())]
        shifts_ms = {each.name: self._shift_ms(each) for each in peers}
        failed = []
        for work in works:
            what = f"{peer.name}.{work.name}"
            runs = self._report.runs
            if not self._attempt(what, peer, partial(measured, peers, work, runs, shifts_ms)):
                failed.append(what)
        self._report.figures |= self._kept.figures
        if failed:
            raise ChildFailedError(f"no figures of {', '.join(failed)}")

    def _shift_ms(self, peer: Peer) -> int:
        if not self._attempt(peer.name, peer, partial(_of_few_events, peer)):
            raise ChildFailedError(self._kept.not_run[peer.name])
        return int(self._kept.figures[f"{peer.name}.{_SHIFT}"])

    def _attempt(self, what: str, peer: Peer, measuring: Callable[[], Figures]) -> bool:
        """Measure something unless it is known, and print its figures. Returns whether there are any.

        Those of a peer that was too slow are of what it did until it was stopped, and it is named as not run.
        """
        if not self._again and self._kept.has(what, peer.version):
            print(f"{what}: known already", flush=True)
            return True
        try:
            figures, why = measuring(), None
        except TooSlowError as error:
            figures, why = error.figures, str(error)
        except (ChildFailedError, WrongValuesError) as error:
            self._skip(what, str(error))
            return False
        self._kept.note(what, peer.version, figures, why)
        self._kept.write(self._folder)
        for key, value in figures.items():
            print(f"{what + '.' + key:56}{value:>16,.6g}", flush=True)
        return True

    def _skip(self, what: str, why: str) -> None:
        print(f"{what}: not run: {why}", file=sys.stderr, flush=True)
        self._kept.note_missing(what, why)
        self._kept.write(self._folder)


def _of_few_events(peer: Peer) -> Figures:
    """Return how a peer's window is told, and what it makes of ties and disorder."""
    shift_ms = boundary_shift_ms(peer)
    return {_SHIFT: shift_ms, **disorder(peer, shift_ms)}
