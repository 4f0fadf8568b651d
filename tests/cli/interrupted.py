"""Runs `railgun run` on the stand-in, slowly: `python -m tests.cli.interrupted ARGUMENTS`; to be interrupted."""

import sys

import railgun.engine.offline
from railgun.cli.main import main
from tests.cli.fake_run import FakeRun

if __name__ == "__main__":
    FakeRun.delay_s = 0.2
    railgun.engine.offline.OfflineRun = FakeRun  # type: ignore[assignment,misc]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.exit(main(sys.argv[1:]))
