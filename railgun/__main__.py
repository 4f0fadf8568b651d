"""The railgun command, and `python -m railgun`."""

import sys

_INTERRUPTED = 130


def main() -> int:
    """The exit code. Loads the commands, which takes a moment: an interrupt in it is as good as a later one."""
    try:
        from railgun.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("railgun: interrupted\n")
        return _INTERRUPTED
    return run()


if __name__ == "__main__":
    sys.exit(main())
