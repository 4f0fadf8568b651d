"""The bench of placing runs: its table has a line per cluster, and a lost node moves no more than it had."""

import pytest

from bench import placing


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert placing.main(["--scale", "0.02"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    rows = [line.replace(",", "").split() for line in lines]
    assert [(nodes, tasks) for nodes, tasks, *_ in rows] == [
        *(("1", "8"), ("2", "16"), ("5", "40"), ("10", "80"), ("20", "160"), ("35", "280"), ("50", "400")),
        *(("2", "200"), ("20", "2000")),
    ]
    for row in rows[1:]:
        had, moved = map(int, row[6:8])
        assert 0 <= moved <= had
