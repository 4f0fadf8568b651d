"""This engine beside others: the same events, windows and number of events held, values compared with exact ones.

    python -m bench.peers [--only PEER ...] [--work WORK ...] [--runs N] [--scale F] [--again]

Each peer runs in a process of its own, in turn with this engine's. How its window is told is found by a test of the
window's ends, and figures count only if the values are right. They are kept in bench/results/ after each work; what is
there with the same parameters, on the same machine, is not measured again. The last line is JSON.
"""

import argparse
import sys

from bench.command_line import Case, again_option, measure
from bench.kept_results import FOLDER
from bench.peers.catalog import PEERS, Peer, beside
from bench.peers.kept_run import KeptRun
from bench.peers.work import WORKS
from bench.report import Report


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--work", nargs="*", choices=list(WORKS), help="which kinds of work (default: all)")
    again_option(parser)


def _case(peer: Peer) -> Case:
    def case(report: Report) -> None:
        works = [WORKS[name].scaled(report.scale) for name in report.options.work or WORKS]
        KeptRun(report, FOLDER, beside(peer), report.options.again).measure(peer, works)

    return case


if __name__ == "__main__":
    cases = {name: _case(peer) for name, peer in PEERS.items()}
    sys.exit(measure("peers", __doc__, cases, _configure))
