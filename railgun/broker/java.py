"""Finding a Java that can run Kafka."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from railgun.broker.errors import JavaError

VERSION_MIN = 17
_ANSWER_S = 60
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_INSTALL = "install a Java 17 runtime (Debian: openjdk-17-jre-headless) or let JAVA_HOME name one"


def find_java() -> Path:
    """The `java` of JAVA_HOME, or else of PATH. Raises JavaError where it is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    named = Path(home) / "bin" / "java" if home else None
    if named is not None and not os.access(named, os.X_OK):
        raise JavaError(str(named), "JAVA_HOME names no Java", _INSTALL)
    found = str(named) if named is not None else shutil.which("java")
    if found is None:
        raise JavaError("java", "Kafka needs Java, and none is on the PATH", _INSTALL)
    version = _version(found)
    if version < VERSION_MIN:
        raise JavaError(found, f"it is Java {version}, and Kafka needs {VERSION_MIN} or newer", _INSTALL)
    return Path(found)


def _version(java: str) -> int:
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_ANSWER_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(java, f"it does not run ({error})", _INSTALL) from error
    found = _VERSION.search(told.stderr + told.stdout)
    if found is None:
        raise JavaError(java, "it does not say which version it is", _INSTALL)
    major = int(found[1])
    # Java 8 calls itself 1.8.
    return int(found[2] or 0) if major == 1 else major
