"""Which Maven repository to fetch from, where one was configured in the place of the public one."""

import os
import xml.etree.ElementTree as ET
from pathlib import Path

from railgun.broker.errors import FetchError

REPOSITORY_VARIABLE = "RAILGUN_MAVEN_REPOSITORY"
# What `mirrorOf` may say for a mirror to stand for the public repository, which Maven calls `central`.
_STANDS_FOR_CENTRAL = {"*", "central", "external:*"}


def configured_repository(home: Path) -> str | None:
    """The repository that RAILGUN_MAVEN_REPOSITORY names, or else the mirror in `~/.m2/settings.xml`; None: neither.

    Raises FetchError where the settings cannot be read.
    """
    named = os.environ.get(REPOSITORY_VARIABLE)
    if named:
        return named.rstrip("/")
    settings = home / ".m2" / "settings.xml"
    if not settings.is_file():
        return None
    try:
        root = ET.parse(settings).getroot()
    except (ET.ParseError, OSError) as error:
        raise FetchError(str(settings), f"it cannot be read ({error})", "mend it, or move it away") from error
    for mirror in root.iterfind("{*}mirrors/{*}mirror"):
        url, stands_for = mirror.findtext("{*}url", "").strip(), mirror.findtext("{*}mirrorOf", "")
        words = {word.strip() for word in stands_for.split(",")}
        if url and words & _STANDS_FOR_CENTRAL and "!central" not in words:
            return url.rstrip("/")
    return None
