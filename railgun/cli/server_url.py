"""The option that says which server a command talks to."""

import argparse


def add_url(parser: argparse.ArgumentParser) -> None:
    """--url, with the environment's RAILGUN_URL and this machine's port 8080 behind it."""
    parser.add_argument(
        "--url", metavar="U", help="the server's address (default: $RAILGUN_URL, else http://127.0.0.1:8080)"
    )
