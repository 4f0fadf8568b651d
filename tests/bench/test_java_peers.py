"""Java programs of peers are compiled with what they use beside them, and again when something of that has changed."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from bench.peers import java, packages
from bench.peers.catalog import PEERS

PROGRAM = "public class Program { public static void main(String[] a) { System.out.println(Used.said()); } }"
USED = 'class Used { static String said() { return "%s"; } }'


@pytest.mark.skipif(java.missing_jdk() is not None, reason="no JDK is installed")
def test_a_change_of_what_a_program_uses_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_CLASSES", tmp_path / "classes")
    folder = tmp_path / "programs"
    folder.mkdir()
    program, used = folder / "Program.java", folder / "Used.java"
    program.write_text(PROGRAM)
    for said in ("one", "two"):
        used.write_text(USED % said)
        classes = java.compiled(program, "none.jar")
        shown = subprocess.run(["java", "-cp", str(classes), "Program"], capture_output=True, text=True)
        assert shown.stdout == f"{said}\n"

    an_hour_ago_s = time.time() - 3_600
    for source in (program, used):
        os.utime(source, (an_hour_ago_s, an_hour_ago_s))
    made = (classes / "Program.class").stat().st_mtime_ns
    assert java.compiled(program, "none.jar") == classes
    assert (classes / "Program.class").stat().st_mtime_ns == made, "nothing has changed"


def test_each_program_of_flink_is_there() -> None:
    programs = {peer.arguments[0] for peer in PEERS.values() if peer.module == "bench.peers.flink_program"}
    assert programs == {"OverRange", "KeyedSums"}
    for program in programs:
        assert (Path(packages.__file__).with_name("flink") / f"{program}.java").is_file()
