"""`railgun serve` as a process of its own, forked unless another program is to start it."""

import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.forked import ROOT, Forked
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import PATIENCE_S

__all__ = ["ROOT", "process"]


@contextmanager
def process(
    data: Path,
    *words: str,
    before: Sequence[str] = (),
    definitions: Path | None = None,
    context: ssl.SSLContext | None = None,
) -> Iterator[tuple["subprocess.Popen[str] | Forked", httpx.Client]]:
    """`railgun serve` on a free port, with payments, ready. before: words of a command that runs it; its process must
    become the server's.  definitions: where to write them, if not beside the data.  context: of the client, for TLS.
    """
    definitions = definitions or data.parent / "payments.toml"
    definitions.write_text(PAYMENTS)
    command = [
        "serve",
        "--data",
        str(data),
        "--http",
        "127.0.0.1:0",
        "--definitions",
        str(definitions),
        *words,
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAILGUN_HTTP")}
    more: Any = {
        "cwd": ROOT,
        "env": environment | {"RAILGUN_LOGGING__FORMAT": "json"},
        "stderr": subprocess.PIPE,
        "text": True,
    }
    child: subprocess.Popen[str] | Forked
    if before:
        child = subprocess.Popen([*before, sys.executable, "-m", "railgun", *command], **more)
    else:
        child = Forked("railgun", command, **more)
    try:
        assert child.stderr is not None
        url, said = "", ""
        while not url:
            line = child.stderr.readline()
            assert line, f"it ended before it was ready: {said}"
            said += line
            url = json.loads(line).get("url", "") if line.startswith("{") else ""
        with httpx.Client(
            base_url=url, timeout=PATIENCE_S, trust_env=False, verify=context or True
        ) as client:
            yield child, client
    finally:
        child.kill()
        child.wait()
        assert child.stderr is not None
        child.stderr.close()
