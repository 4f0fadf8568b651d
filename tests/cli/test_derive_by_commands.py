"""DERIVE by the commands that people type: explain in every format, apply, apply again, apply what differs, status."""

import json
from pathlib import Path

import pytest

from railgun.cli.main import main
from tests.frontend.serving import server

STREAM = """
[streams.s]
time = "ts"
partitioners = ["k", "*"]
[streams.s.fields]
ts = "timestamp"
k = "string"
x = "long"
"""
METRICS = """
[[metrics]]
sql = "DERIVE mean > 2e0 AS high, total / n AS mean FROM s"
[[metrics]]
sql = "SELECT count(*) AS n FROM s OVER INFINITE"
[[metrics]]
sql = "SELECT sum(x) AS total FROM s GROUP BY k OVER SLIDING 1 HOUR"
"""


@pytest.mark.parametrize("form", ["tree", "dot", "svg", "json"])
def test_explain_shows_it(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "d.toml"
    file.write_text(STREAM + METRICS)
    assert main(["explain", str(file), "--format", form]) == 0
    out = capsys.readouterr().out
    if form == "json":
        derived = json.loads(out)["streams"][0]["derived"]
        assert derived == [
            {
                "name": "mean",
                "expression": "total / n",
                "type": "double",
                "metrics": ["total", "n"],
                "fields": [],
                "reads": ["total", "n"],
            },
            {
                "name": "high",
                "expression": "mean > 2.0e0",
                "type": "boolean",
                "metrics": ["total", "n"],
                "fields": [],
                "reads": ["mean"],
            },
        ]
        return
    assert "mean = total / n" in out
    assert "high = mean" in out


def test_apply_and_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with server(tmp_path / "data") as served:
        url = str(served.client.base_url)

        def apply(metrics: str) -> tuple[int, list[str]]:
            file = tmp_path / "d.toml"
            file.write_text(STREAM + metrics)
            code = main(["apply", str(file), "--url", url])
            said = capsys.readouterr()
            return code, [*said.out.splitlines(), *said.err.splitlines()]

        made = [f"created metric s.{name}" for name in ("n", "total", "mean", "high")]
        assert apply(METRICS) == (0, ["created stream s", *made])
        assert apply(METRICS) == (0, ["nothing to do: all of it is registered"])
        code, said = apply(METRICS.replace("mean > 2e0", "mean > 3e0"))
        before, after = (f"DERIVE mean > {bound} AS high FROM s" for bound in ("2.0e0", "3.0e0"))
        assert (code, said[0]) == (1, f"differs: s: metric high is {before}, the definition says {after}")
        # A name of the other kind: nothing of the file is made.
        other = '[[metrics]]\nsql = "SELECT count(*) AS fresh, count(*) AS mean FROM s OVER INFINITE"\n'
        code, said = apply(other)
        assert code == 1
        assert said[0].startswith(
            "differs: s: metric mean is DERIVE total / n AS mean FROM s, the definition says"
        )
        # A metric named like a field that one reads.
        assert apply('[[metrics]]\nsql = "DERIVE x + 1 AS more FROM s"\n')[0] == 0
        code, said = apply(
            '[[metrics]]\nsql = "SELECT count(*) AS fresh, count(*) AS x FROM s OVER INFINITE"\n'
        )
        assert code == 2
        assert "the derived metric more reads the field x: a metric needs another name" in said[-1]
        names = [each["name"] for each in served.client.get("/v1/streams/s/metrics").json()["metrics"]]
        assert names == ["n", "total", "mean", "high", "more"]
        assert main(["status", "--url", url]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert [line[1] for line in lines if line and line[0] in names] == ["*", "k", *["derived"] * 3]
