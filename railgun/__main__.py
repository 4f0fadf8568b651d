"""The railgun command, and `python -m railgun`."""

import sys

_INTERRUPTED = 130


def main() -> int:
    """Run the command, and return the exit code. An interrupt while the commands load counts like a later one."""
    try:
        from railgun.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("railgun: interrupted\n")
        return _INTERRUPTED
    return run()


if __name__ == "__main__":
    sys.exit(main())
