"""What the threads of a server use: processor time, and how often they wait. Linux tells it in /proc."""

from pathlib import Path

import psutil

from bench.process import cpu_s

_LOOP, _REST = "loop_us", "rest_us"
_PART_OF = {"scoring": "scoring_us", "log-commit": "log_us"}
_BACKGROUND_NAMES, _BACKGROUND = "railgun-", "background_us"


def used(pid: int) -> dict[str, float]:
    """Return what a server that `bench.service` started has used until now. Raises OSError if it is gone.

    cpu_us: its processor time.  loop_us, scoring_us, log_us, background_us: that of the event loop's thread, of the one
    that scores, of the log's and of the one for background work.  rest_us: that of the others, ended ones too.
    system_us: what the kernel took of `cpu_us`.  waits: how often a thread gave its processor up to wait.
    """
    parts = dict.fromkeys((_LOOP, *_PART_OF.values(), _BACKGROUND), 0.0)
    waits, cpu_us = 0, cpu_s(pid) * 1e6
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            part = _LOOP if thread.name == str(pid) else _part_of((thread / "comm").read_text().strip())
            own_us = int((thread / "schedstat").read_text().split()[0]) / 1e3
            status = (thread / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # The thread has ended meanwhile.
        waits += int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
        if part != _REST:
            parts[part] += own_us
    rest_us, system_us = cpu_us - sum(parts.values()), psutil.Process(pid).cpu_times().system * 1e6
    return {"cpu_us": cpu_us, **parts, _REST: rest_us, "system_us": system_us, "waits": waits}


def _part_of(name: str) -> str:
    return _BACKGROUND if name.startswith(_BACKGROUND_NAMES) else _PART_OF.get(name, _REST)
