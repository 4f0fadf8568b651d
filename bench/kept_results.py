"""The file of a run: figures as numbers, why others are missing, the machine; written after each part, so resumable."""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.children import TREE
from bench.revision import commit_of
from railgun.measuring.machine import machine_facts

FOLDER = TREE / "bench" / "results"
_DIGEST_CHARACTERS = 8


def machine() -> dict[str, Any]:
    """Return the facts of this machine that figures depend on. Its kernel may be another one after a start."""
    facts = machine_facts()
    return {
        "processor": facts["processor"],
        "cores": facts["cores"],
        "memory_gib": round(facts["memory_bytes"] / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": facts["versions"]["python"],
        "java": _java_version(),
    }


def _java_version() -> str:
    """Return the version of Java here, or nothing."""
    if shutil.which("java") is None:
        return ""
    shown = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
    return shown.split('"')[1] if '"' in shown else ""


@dataclass(slots=True)
class Results:
    """What is known of one bench with one set of parameters on one machine.

    figures: by "part.figure" and "part.case.figure", numbers alone.  not_run: why, by "part" or "part.case".
    runs: by the same, when and at which load it was measured, the kernel's release, the part's version, and the commit
    of this engine.
    """

    bench: str
    parameters: dict[str, Any]
    machine: dict[str, Any]
    figures: dict[str, float] = field(default_factory=dict)
    not_run: dict[str, str] = field(default_factory=dict)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def has(self, what: str, version: str) -> bool:
        """Whether something has been measured, of this version."""
        return self.runs.get(what, {}).get("version") == version

    def note(self, what: str, version: str, figures: dict[str, float], stopped: str | None = None) -> None:
        """Take figures over in place of what was known. stopped: why they are those of a part of the work."""
        self._forget(what)
        if stopped is not None:
            self.not_run[what] = stopped
        self.figures |= {f"{what}.{key}": value for key, value in figures.items()}
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.runs[what] = {
            "at": at,
            "load_1min": round(os.getloadavg()[0], 2),
            "kernel": platform.release(),
            "version": version,
            "commit": commit_of(TREE, "HEAD"),
        }

    def note_missing(self, what: str, why: str) -> None:
        """Say why something has no figures."""
        self._forget(what)
        self.not_run[what] = why

    def _forget(self, what: str) -> None:
        """Forget its own figures: those of "part.case" are not those of "part"."""
        own = {key for key in self.figures if key.rpartition(".")[0] == what}
        self.figures = {key: value for key, value in self.figures.items() if key not in own}
        self.not_run.pop(what, None)
        self.runs.pop(what, None)

    @property
    def measured_at(self) -> list[str]:
        """The days and times at which parts of it were measured, the earliest first."""
        return sorted(run["at"] for run in self.runs.values())

    @property
    def name(self) -> str:
        """The file's name, by the parameters and the machine."""
        described = json.dumps([self.parameters, self.machine], sort_keys=True).encode()
        return f"{self.bench}-{hashlib.sha256(described).hexdigest()[:_DIGEST_CHARACTERS]}.json"

    def write(self, folder: Path) -> None:
        """Write the file, all of it or nothing."""
        folder.mkdir(parents=True, exist_ok=True)
        written = {
            "bench": self.bench,
            "parameters": self.parameters,
            "machine": self.machine,
            "figures": self.figures,
            "not_run": self.not_run,
            "runs": self.runs,
        }
        partial = folder / f"{self.name}.partial"
        partial.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
        partial.replace(folder / self.name)


def read(path: Path) -> Results:
    """Read a file that `write` made. Raises ValueError if it is none."""
    try:
        read_ = json.loads(path.read_text(encoding="utf-8"))
        return Results(
            *(read_[key] for key in ("bench", "parameters", "machine", "figures", "not_run", "runs"))
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no file of a run: {error!r}") from None


def known(bench: str, parameters: dict[str, Any], folder: Path) -> Results:
    """Return what is known of a bench with these parameters on this machine, be it nothing."""
    found = Results(bench, parameters, machine())
    path = folder / found.name
    return read(path) if path.is_file() else found
