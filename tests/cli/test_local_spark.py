"""The flags of commands that start a Spark on this machine."""

import argparse

import pytest

from railgun.cli.main import main
from railgun.cli.spark_flags import add_local_spark


@pytest.mark.parametrize("cores", ["0", "-1", "1025", "99999999999", "two", "\u0662", ""])
@pytest.mark.parametrize("command", ["backfill", "validate"])
def test_a_number_of_cores_that_cannot_be(
    command: str, cores: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "d.toml", f"--cores={cores}"]) == 2
    assert f"{cores} is neither * nor a number from 1 to 1024" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "cores"), [([], 0), (["--cores", "*"], 0), (["--cores", "3"], 3)])
def test_spark_gets_all_cores_unless_told_how_many(words: list[str], cores: int) -> None:
    parser = argparse.ArgumentParser()
    add_local_spark(parser)
    assert parser.parse_args(words).cores == cores
