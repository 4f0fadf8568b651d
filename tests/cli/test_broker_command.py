"""`railgun broker` as it is typed."""

import json
from pathlib import Path

import pytest

from railgun.cli.main import main


def test_start_status_stop(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--data", str(tmp_path / "broker"), "--json"]
    try:
        assert main(["broker", "start", "--port", "0", *words]) == 0
        started = json.loads(capfd.readouterr().out)
        assert main(["broker", "status", *words]) == 0
        asked = json.loads(capfd.readouterr().out)
        assert {**asked, "uptime_s": 0} == {**started, "uptime_s": 0}
        assert asked["topics"] == {}
        assert main(["broker", "status", *words[:2]]) == 0
        assert started["address"] in capfd.readouterr().out
        assert main(["broker", "start", "--port", "0", *words]) == 2
        assert "running already" in capfd.readouterr().err
        assert main(["broker", "topic", "shop.orders", *words]) == 0
        capfd.readouterr()
        assert main(["broker", "topic", "shop.refunds", "--partitions", "3", *words]) == 0
        assert json.loads(capfd.readouterr().out)["topics"] == {"shop.orders": 1, "shop.refunds": 3}
        assert main(["broker", "topic", "shop.orders", *words]) == 0
        said = capfd.readouterr()
        assert json.loads(said.out)["topics"] == {"shop.orders": 1, "shop.refunds": 3}
        assert said.err == "railgun broker: shop.orders is there already, with 1 partition\n"
        assert main(["broker", "topic", "shop.refunds", *words]) == 2
        assert capfd.readouterr().err == (
            "railgun broker: shop.refunds: the topic is there already, with 3 partitions; "
            "use it as it is (--partitions 3), or name another one\n"
        )
        assert main(["broker", "topic", "a b", *words]) == 2
        said = capfd.readouterr()
        assert said.err.startswith("railgun broker: a b: the topic could not be made (")
        assert said.err.endswith("); name another one\n")
    finally:
        assert main(["broker", "stop", *words]) == 0
    assert json.loads(capfd.readouterr().out)["stopped"]
    assert main(["broker", "status", *words]) == 1
    assert json.loads(capfd.readouterr().out) == {"data": words[1], "running": False}


def test_nothing_is_running(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path / "none")
    assert main(["broker", "status", "--data", folder]) == 1
    assert f"start it with `railgun broker start --data {folder}`\n" in capsys.readouterr().out
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["broker", "status"]) == 1
    assert "broker start`, or name the folder of another one with --data\n" in capsys.readouterr().out
    assert main(["broker", "stop", "--data", folder]) == 0
    assert main(["broker", "topic", "t", "--data", folder]) == 2
    assert f"{folder}: its broker is not running; start it with" in capsys.readouterr().err
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["begin"], "invalid choice: 'begin'"),
        ([], "the following arguments are required: action"),
        (
            ["start", "--port", "70000"],
            "argument --port: it is a whole number from 0 to 65,535, not '70000'; see",
        ),
        (["start", "--port", "x"], "from 0 to 65,535, not 'x'"),
        (["topic"], "name the topic to make, as in railgun broker topic shop.orders"),
        (["stop", "now"], "`stop` takes no argument, and 'now' is one"),
        (
            ["topic", "t", "--partitions", "0"],
            "argument --partitions: it is a whole number from 1 to 1,000, not '0'",
        ),
    ],
)
def test_wrong_use(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", *words]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert sentence in said


def test_without_java(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert main(["broker", "start", "--data", str(tmp_path)]) == 2
    assert "Java 17" in capsys.readouterr().err
