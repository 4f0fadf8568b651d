"""A real server and the commands that talk to it: created, scored, shown, stopped, started again."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from railgun import __version__
from railgun.client.client import Client
from railgun.demo.processes import Server
from tests.client.relay import bound, leading_to
from tests.forked import ROOT, Forked, run

DEFINITIONS = """
[streams.{name}]
time = "ts"
id = "tx"
partitioners = ["card"]
lateness = "{lateness}"
[streams.{name}.fields]
tx = "string"
ts = "timestamp"
card = "string"
{fields}
[[metrics]]
sql = "SELECT count(*) AS n FROM {name} GROUP BY card OVER SLIDING 1 DAY"
{metrics}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server("serve", "--data", str(tmp_path_factory.mktemp("serve") / "data")) as started:
        yield started


def railgun(
    *words: str | Path, url: str = "", sent: str = "", **environment: str
) -> "subprocess.CompletedProcess[str]":
    own = {name: value for name, value in os.environ.items() if "__" not in name and name != "RAILGUN_URL"}
    if url:
        environment["RAILGUN_URL"] = url
    return run("railgun", words, sent=sent, env={**own, **environment})


def definitions(
    folder: Path, name: str, *, lateness: str = "5s", fields: str = "", metrics: str = ""
) -> Path:
    file = folder / "d.toml"
    file.write_text(DEFINITIONS.format(name=name, lateness=lateness, fields=fields, metrics=metrics))
    return file


def event(number: int, **others: object) -> str:
    return json.dumps({"tx": f"t{number}", "ts": 1_700_000_000_000 + number, "card": "c", **others}) + "\n"


def test_apply_creates_what_is_missing_and_only_that(server: Server, tmp_path: Path) -> None:
    first = railgun("apply", definitions(tmp_path, "a"), url=server.url)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == "created stream a\ncreated metric a.n\n"
    again = railgun("apply", definitions(tmp_path, "a"), "--url", server.url)
    assert (again.returncode, again.stdout) == (0, "nothing to do: all of it is registered\n")
    more = definitions(
        tmp_path,
        "a",
        fields='amount = "double"',
        metrics='[[metrics]]\nsql = "SELECT sum(amount) AS s, min(ts) AS t FROM a GROUP BY card OVER INFINITE"',
    )
    grown = railgun("apply", more, url=server.url)
    assert (grown.returncode, grown.stderr) == (0, "")
    assert grown.stdout == "created stream a, fields\ncreated metric a.s\ncreated metric a.t\n"
    assert railgun("apply", more, url=server.url).stdout.startswith("nothing to do")
    with Client(server.url) as client:
        assert [metric["name"] for metric in client.metrics("a")] == ["n", "s", "t"]


def test_apply_tells_each_difference_and_changes_nothing(server: Server, tmp_path: Path) -> None:
    railgun("apply", definitions(tmp_path, "b"), url=server.url)
    other = '[[metrics]]\nsql = "SELECT count(*) AS m FROM b GROUP BY card OVER INFINITE"'
    told = railgun("apply", definitions(tmp_path, "b", lateness="7s", metrics=other), url=server.url)
    assert told.returncode == 1
    assert told.stdout == "differs: b: lateness is 5s, the definition says 7s\n"
    assert told.stderr == (
        "railgun apply: nothing was applied; change the definitions, or change what is registered: "
        "PATCH /v1/streams/b with what differs (client.evolve_stream)\n"
    )
    with Client(server.url) as client:
        assert [metric["name"] for metric in client.metrics("b")] == ["n"]
    file = definitions(tmp_path, "b", lateness="7s")
    file.write_text(file.read_text().replace("count(*) AS n", "max(ts) AS n"))
    told = railgun("apply", file, url=server.url)
    assert told.stderr.endswith("change the definitions, or drop what is registered\n")


def test_apply_with_events_there_returns_once_metrics_are_warm(server: Server, tmp_path: Path) -> None:
    railgun("apply", definitions(tmp_path, "w"), url=server.url)
    railgun("score", "w", url=server.url, sent="".join(event(i) for i in range(5_000)))
    more = '[[metrics]]\nsql = "SELECT max(ts) AS newest FROM w GROUP BY card OVER SLIDING 2 DAYS"'
    assert railgun("apply", definitions(tmp_path, "w", metrics=more), url=server.url).returncode == 0
    with Client(server.url) as client:
        assert not [metric for metric in client.metrics("w") if metric["warming"]]


def test_score_prints_a_line_for_each_event_in_order(server: Server, tmp_path: Path) -> None:
    railgun("apply", definitions(tmp_path, "c"), url=server.url)
    file = tmp_path / "events.ndjson"
    file.write_text("".join(event(i) for i in range(3_000)))
    done = railgun("score", "c", file, url=server.url)
    assert (done.returncode, done.stderr) == (0, "")
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(reply["id"], reply["metrics"]["n"]) for reply in replies] == [
        (f"t{i}", i + 1) for i in range(3_000)
    ]


def test_score_counts_what_is_refused(server: Server, tmp_path: Path) -> None:
    railgun("apply", definitions(tmp_path, "d"), url=server.url)
    sent = event(1) + "\n{no json\n" + event(2, card=7) + event(3).strip()
    done = railgun("score", "d", "-", url=server.url, sent=sent)
    assert done.returncode == 1
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer.get("status", answer.get("id")) for answer in answers] == ["t1", 400, 422, "t3"]
    assert done.stderr.startswith("railgun score: 2 of 4 events refused; the first, line 3: ")
    assert done.stderr.count("\n") == 1


def test_score_answers_while_its_input_is_open(server: Server, tmp_path: Path) -> None:
    railgun("apply", definitions(tmp_path, "e"), url=server.url)
    command = [sys.executable, "-m", "railgun", "score", "e", "--url", server.url]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            for number in range(3):
                process.stdin.write(event(number))
                process.stdin.flush()
                assert json.loads(process.stdout.readline())["metrics"] == {"n": number + 1}
            process.stdin.close()
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_what_cannot_be_asked_is_one_line(server: Server, tmp_path: Path) -> None:
    for words, said in (
        (("score", "nope"), "'nope'"),
        (("score", "nope", str(tmp_path / "none")), "is the path right?"),
        (
            ("status", "--url", "http://127.0.0.1:1"),
            "connection refused; is a server running there?",
        ),
        (("apply", str(tmp_path / "none")), "is the path right?"),
    ):
        done = railgun(*words, url=server.url, sent=event(1))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"railgun {words[0]}: ")
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_server_that_does_not_listen_yet_is_waited_for(server: Server, tmp_path: Path) -> None:
    with bound() as address:
        url = f"http://127.0.0.1:{address.getsockname()[1]}"
        words = ["apply", definitions(tmp_path, "w"), "--url", url]
        with Forked("railgun", words, stderr=subprocess.PIPE, text=True) as applying:
            assert applying.stderr is not None
            refused = f"{url}: connection refused; is a server running there?"
            assert applying.stderr.readline() == f"railgun apply: waiting, up to 300 s: {refused}\n"
            with leading_to(server.url.removeprefix("http://"), address):
                assert applying.wait(100) == 0
                assert railgun("score", "w", url=url, sent=event(1)).returncode == 0


def test_score_of_nothing_says_whether_it_could_have_been_sent(server: Server, tmp_path: Path) -> None:
    railgun("apply", definitions(tmp_path, "g"), url=server.url)
    assert railgun("score", "g", url=server.url, sent="\n").returncode == 0
    for words, said in (
        (("score", "nope"), "'nope'"),
        (("score", "g", "--url", "http://127.0.0.1:1", "--patience", "0"), "connection refused"),
    ):
        done = railgun(*words, url=server.url)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


def test_status_shows_streams_metrics_and_tasks(server: Server, tmp_path: Path) -> None:
    railgun("apply", definitions(tmp_path, "f"), url=server.url)
    railgun("score", "f", url=server.url, sent=event(1))
    shown = railgun("status", url=server.url)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "f: 1 metric, 1 task\n" in shown.stdout
    assert "SELECT count(*)" in shown.stdout
    assert "2023-11-14T22:13:20.001Z" in shown.stdout
    status = json.loads(railgun("status", "--json", url=server.url).stdout)
    [stream] = [stream for stream in status["streams"] if stream["name"] == "f"]
    assert (stream["metrics"][0]["name"], stream["metrics"][0]["warming"]) == ("n", False)
    assert stream["tasks"][0]["position"] > 1
    assert status["disk"]["log_bytes"] > 0


def test_stopped_and_copied_the_copy_goes_on(tmp_path: Path) -> None:
    data, file = tmp_path / "data", definitions(tmp_path, "s")
    with Server("serve", "--data", str(data), "--definitions", str(file)) as server:
        assert railgun("score", "s", url=server.url, sent=event(1)).returncode == 0
        server.stop()
        told = [json.loads(line) for line in server.output]
    [started] = [line for line in told if line.get("url")]
    assert started["url"] == server.url
    assert (started["data"], started["durability"], started["version"]) == (str(data), "fsync", __version__)
    assert not [line for line in told if "t1" in json.dumps(line)]
    shutil.copytree(data, tmp_path / "copy")
    with Server("serve", "--data", str(tmp_path / "copy"), "--definitions", str(file)) as server:
        assert [json.loads(line)["message"].partition(":")[0] for line in server.output] == [
            "opening",
            "serving",
        ]
        again = railgun("score", "s", url=server.url, sent=event(1) + event(2))
        assert [json.loads(line)["metrics"]["n"] for line in again.stdout.splitlines()] == [1, 2]
        assert json.loads(again.stdout.splitlines()[0])["duplicate"] == ["card"]


def test_what_keeps_it_from_starting_is_one_line(server: Server, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("[http]\nprot = 1\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    busy = server.url.removeprefix("http://")
    for words, environment, said in (
        (["--config", f"{tmp_path}/r.toml"], {}, "http.prot: unknown key; did you mean port?"),
        (["--http", "8080"], {}, "--http: '8080' is no address; write HOST:PORT, as in 127.0.0.1:8080"),
        (["--http", "127.0.0.1:99999"], {}, "--http: 99999 is not in 0..65535"),
        ([], {"RAILGUN_HTTP__PRT": "1"}, "RAILGUN_HTTP__PRT: unknown setting"),
        (["--data", f"{tmp_path}/full", "--http", "127.0.0.1:0"], {}, "no data of Railgun"),
        (
            ["--data", "/proc/none", "--http", "127.0.0.1:0"],
            {},
            "/proc/none: no data folder can be made here",
        ),
        (["--data", f"{tmp_path}/new", "--http", busy], {}, busy.rpartition(":")[2]),
        (["--definitions", f"{tmp_path}/none.toml"], {}, "is the path right?"),
        (["--http", "0.0.0.0:0"], {}, "set http.anonymous = true (RAILGUN_HTTP__ANONYMOUS=true)"),
        (["--http", ":0"], {}, "set http.anonymous = true (RAILGUN_HTTP__ANONYMOUS=true)"),
        (["--http", "127.0.0.1:0"], {"RAILGUN_HTTP__TOKENS_FILE": f"{tmp_path}/none"}, "is the path right?"),
        (
            ["--http", "127.0.0.1:0"],
            {"RAILGUN_HTTP__TOKENS_FILE": f"{tmp_path}/r.toml"},
            "tokens belong here as [[http.tokens]], at least one, and nothing else",
        ),
        (
            ["--http", "127.0.0.1:0"],
            {"RAILGUN_HTTP__TOKENS_FILE": f"{tmp_path}/r.toml", "RAILGUN_HTTP__ANONYMOUS": "true"},
            "http.anonymous: with tokens, not everybody may do everything",
        ),
    ):
        done = railgun("serve", *words, **environment)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert said in done.stderr
        assert done.stderr.startswith("railgun serve: ")
        assert done.stderr.count("\n") == 1


def test_definitions_that_differ_keep_it_from_starting(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Server("serve", "--data", str(data), "--definitions", str(definitions(tmp_path, "s"))) as server:
        server.stop()
    other = definitions(tmp_path, "s", lateness="9s")
    done = railgun("serve", "--data", data, "--http", "127.0.0.1:0", "--definitions", other)
    assert done.returncode == 2
    assert "nothing was applied" in done.stderr


def test_apply_warns_of_input_topics_that_the_server_does_not_read(server: Server, tmp_path: Path) -> None:
    file = definitions(tmp_path, "unread")
    file.write_text(file.read_text() + '[streams.unread.input]\ntopics = ["prod.payments"]\n')
    said = railgun("apply", file, url=server.url)
    assert (said.returncode, said.stdout) == (0, "created stream unread\ncreated metric unread.n\n")
    why = "this server has no broker"
    assert said.stderr == f"railgun apply: WARNING: unread: its input topics are not read: {why}\n"
    again = railgun("apply", file, url=server.url)
    assert (again.stdout, again.stderr) == ("nothing to do: all of it is registered\n", said.stderr)
    assert f"  input prod.payments is not read: {why}\n" in railgun("status", url=server.url).stdout


def test_apply_of_a_file_without_streams(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "empty.toml"
    file.write_text("")
    said = railgun("apply", file, url=server.url)
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr == f"railgun apply: {file}: the file defines no stream\n"
