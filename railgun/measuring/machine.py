"""Says on which machine something was measured: processor, memory, system, versions."""

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from railgun import __version__
from railgun.config.processors import processors

_PACKAGES = ("numpy", "numba", "pyarrow", "rocksdict")
_CPU = Path("/proc/cpuinfo")


def machine_facts() -> dict[str, Any]:
    """Return the facts of this machine as JSON values. cores: those that this process may use."""
    versions = {"railgun": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "processor": _processor(),
        "cores": processors(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load_1min": round(os.getloadavg()[0], 1),
        "versions": versions,
    }


def _processor() -> str:
    with suppress(OSError):
        for line in _CPU.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
