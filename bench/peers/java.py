"""The Java programs of peers: whether a JDK is there, and their classes, compiled when they are first needed."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from bench.peers.packages import FOLDER

_CLASSES, _DIGEST_CHARACTERS = FOLDER.parent / "classes", 12


def missing_jdk() -> str | None:
    """Return why Java programs cannot be compiled and run here, or None."""
    for command in ("java", "javac"):
        if shutil.which(command) is None:
            return f"{command} is not installed: a JDK 17 is needed"
    return None


def compiled(source: Path, class_path: str) -> Path:
    """Return the folder with a program's classes. Compiles it unless that was done since its folder was changed.

    What it uses of other files in its folder is compiled with it.  Raises CalledProcessError.
    """
    # Other jars have a folder of their own.
    digest = hashlib.sha256(class_path.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    folder = _CLASSES / f"{source.parent.name}-{digest}"
    made = folder / f"{source.stem}.class"
    changed_s = max(each.stat().st_mtime for each in source.parent.glob("*.java"))
    if made.is_file() and made.stat().st_mtime > changed_s:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    command = ["javac", "-nowarn", "-cp", class_path, "-sourcepath", str(source.parent)]
    subprocess.run([*command, "-d", str(folder), str(source)], check=True, stdout=sys.stderr)
    return folder
