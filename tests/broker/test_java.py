"""Java is found, or its absence is said in one line."""

from pathlib import Path

import pytest

from railgun.broker.commands import find_java
from railgun.broker.errors import JavaError


def _java(folder: Path, says: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', None),
        ('java version "25" 2025-09-16', None),
        ('java version "1.8.0_402"', "Java 8"),
        ('openjdk version "11.0.22" 2024-01-16', "Java 11"),
        ("what is a version?", "does not say"),
    ],
)
def test_the_version_is_looked_at(
    says: str, version: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = _java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if version is None:
        assert find_java() == java
        return
    with pytest.raises(JavaError, match=version) as caught:
        find_java()
    assert "Java 17" in caught.value.remedy


def test_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(JavaError, match="none is on the PATH"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(JavaError, match="JAVA_HOME"):
        find_java()
