"""Measures peers one after the other, each beside this engine, and keeps what is known."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.children import ChildFailedError
from bench.keeping import Figures, Keeping
from bench.kept_results import known
from bench.peers.catalog import Peer
from bench.peers.measuring import WrongValuesError, boundary_shift_ms, disorder, measured
from bench.peers.pacing import PACED, PART, paced
from bench.peers.work import Work
from bench.report import Report

_SHIFT = "boundary_shift_ms"


class KeptRun:
    """The measurements of one report's scale and number of runs.

    folder: of the file.  beside: what is measured beside every peer.  again: measure what is known, too.
    """

    def __init__(self, report: Report, folder: Path, beside: Sequence[Peer], again: bool) -> None:
        self._report, self._beside = report, beside
        self._kept = known("peers", {"runs": report.runs, "scale": report.scale}, folder)
        self._keeping = Keeping(self._kept, folder, again, (ChildFailedError, WrongValuesError))

    def measure(self, peer: Peer, works: Sequence[Work]) -> None:
        """Measure a peer, or say why not. Raises ChildFailedError if a part of it failed; the others are measured."""
        if why := peer.missing():
            self._keeping.skip(peer.name, why)
            return
        peers = [peer, *(self._beside if peer not in self._beside else ())]
        shifts_ms = {each.name: self._shift_ms(each) for each in peers}
        failed = []
        for work in works:
            what, more = f"{peer.name}.{work.name}", (peers, work, self._report.runs, shifts_ms)
            parts = {what: partial(measured, *more)}
            if peer.on_broker and work.name in PACED:
                parts[f"{what}.{PART}"] = partial(paced, *more)
            failed += [
                part
                for part, measure in parts.items()
                if not self._keeping.attempt(part, peer.version, measure)
            ]
        self._report.figures |= self._kept.figures
        if failed:
            raise ChildFailedError(f"no figures of {', '.join(failed)}")

    def _shift_ms(self, peer: Peer) -> int:
        if not self._keeping.attempt(peer.name, peer.version, partial(_of_few_events, peer)):
            raise ChildFailedError(self._keeping.why(peer.name))
        return int(self._kept.figures[f"{peer.name}.{_SHIFT}"])


def _of_few_events(peer: Peer) -> Figures:
    """Return how a peer's window is told, and what it makes of ties and disorder."""
    shift_ms = boundary_shift_ms(peer)
    return {_SHIFT: shift_ms, **disorder(peer, shift_ms)}
