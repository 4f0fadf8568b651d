"""A server's status, as people read it."""

import re
import socket

import pytest

from railgun.cli import server_url, status
from railgun.cli.main import main
from railgun.cli.status import as_text

STATUS = {
    "folder": "data",
    "durability": "os",
    "disk": {"events_bytes": 1_500_000, "state_bytes": 10, "log_bytes": 0, "free_bytes": 5_000_000_000},
    "streams": [
        {
            "name": "payments",
            "metrics": [
                {"name": "n", "home": "card", "warming": False, "filled": 1.0,
                 "sql": "SELECT count(*)\n FROM payments"},
                {"name": "total", "home": "*", "warming": True, "filled": 0.256, "sql": "SELECT " + "x" * 200},
            ],
            "tasks": [
                {"partitioner": "card", "partition": 0, "position": 1234, "checkpoint": 1000, "log_start": 0,
                 "clock_ms": 1_700_000_000_250},
                {"partitioner": "*", "partition": 0, "position": 2, "checkpoint": 0, "log_start": 0, "clock_ms": None},
            ],
        }
    ],
}  # fmt: skip


def test_a_table_for_metrics_and_one_for_tasks() -> None:
    lines = as_text(STATUS).splitlines()
    assert lines[:6] == [
        "data: durability os",
        "disk: events 1.5 MB, state 10 bytes, log 0 bytes, free 5.0 GB",
        "",
        "payments: 2 metrics, 2 tasks",
        "  metric  by                   query",
        "  n       card  warm           SELECT count(*) FROM payments",
    ]
    assert lines[6].startswith("  total   *     warming, 26 %  SELECT xxx")
    assert max(map(len, lines)) < 150
    assert lines[-2:] == [
        "  card-0  1,234     1,000       0         2023-11-14T22:13:20.250Z",
        "  *-0     2         0           0         no event yet",
    ]


def test_input_topics_are_shown() -> None:
    topics = [
        {"topic": "prod.payments", "partitions": 3, "lag": 1200, "skipped": 0},
        {
            "topic": "prod.refunds",
            "partitions": 1,
            "lag": 1,
            "skipped": 7,
            "refused": 1,
            "missed": {"amount": 0.004, "card": 1.0},
        },
        {"topic": "prod.other", "not_read": "it does not exist"},
    ]
    stream = {"name": "s", "input": topics, "metrics": [], "tasks": []}
    lines = as_text({**STATUS, "streams": [stream]}).splitlines()
    assert "  input prod.payments: 3 partitions here, 1,200 records to be read" in lines
    at = lines.index(
        "  input prod.refunds: 1 partition here, 1 record to be read, 7 records skipped, 1 record refused"
    )
    assert lines[at + 1 : at + 4] == [
        "    the path of card met nothing in 100.0 % of a sample",
        "    the path of amount met nothing in 0.4 % of a sample",
        "  input prod.other is not read: it does not exist",
    ]


def test_outdated_time_zones_are_named() -> None:
    metric = {
        "name": "n",
        "home": "*",
        "warming": False,
        "outdated_zones": ["Europe/Lisbon"],
        "sql": "SELECT",
    }
    shown = as_text({**STATUS, "streams": [{"name": "s", "metrics": [metric], "tasks": []}]})
    assert "  n       *   warm, outdated: Europe/Lisbon  SELECT" in shown.splitlines()


def test_metrics_whose_tasks_nobody_runs_are_not_just_warm() -> None:
    def states(*of_card: str) -> list[str]:
        task = {"position": 1, "lag": 0, "checkpoint": 0, "copies": []}
        tasks = [
            {**task, "partitioner": "card", "partition": partition, "state": state}
            for partition, state in enumerate(of_card)
        ]
        tasks.append({**task, "partitioner": "*", "partition": 0, "state": "running"})
        metrics = [
            {"name": name, "home": home, "warming": False, "sql": "S"}
            for name, home in (("n", "card"), ("all", "*"), ("both", None))
        ]
        lines = as_text({"streams": [{"name": "s", "metrics": metrics, "tasks": tasks}]}).splitlines()
        return [re.split(" {2,}", line)[-2] for line in lines if line.endswith(" S")]

    assert states("running", "failed: why") == ["warm"] * 3
    assert states("running", "unknown") == [
        "warm, not answered by 1 of 2 tasks",
        "warm",
        "warm, not answered by 1 of 3 tasks",
    ]
    assert states("stopped", "unknown") == [
        "warm, not answered",
        "warm",
        "warm, not answered by 2 of 3 tasks",
    ]


def test_why_a_task_failed_is_told_below_the_table() -> None:
    task = {"partitioner": "card", "position": 1, "lag": 0, "checkpoint": 0, "copies": []}
    tasks = [
        {**task, "partition": number, "state": state}
        for number, state in enumerate(("failed: why", "running"))
    ]
    lines = as_text({"streams": [{"name": "s", "metrics": [], "tasks": tasks}]}).splitlines()
    assert re.split(" {2,}", lines[-3])[4] == "failed"
    assert lines[-1] == "  card-0 failed: why"


def test_without_streams_it_says_how_to_make_some() -> None:
    assert "railgun apply" in as_text({"folder": "data", "durability": "os", "streams": []})
    assert as_text({}).startswith("?: durability ?\n")


def test_a_cluster_at_a_glance() -> None:
    cluster = {
        "nodes": [{"node": "a", "units": [0, 1]}, {"node": "b", "units": [0]}],
        "tasks": {"failed": 1, "running": 11},
        "lag": 1_204,
        "unreadable_records": 3,
        "pending_events": 17,
        "pending_oldest_s": 0.24,
    }
    lines = as_text({"folder": "127.0.0.1:9092", "durability": "kafka", "cluster": cluster}).splitlines()
    assert lines[1] == (
        "cluster: 2 nodes, 3 units; tasks: 1 failed, 11 running; 1,204 records behind; 17 events wait for answers, "
        "the oldest for 0.2 s; 3 records could not be read"
    )
    away = as_text({"cluster": {**cluster, "broker_away_s": 53.6}}).splitlines()[1]
    assert away.startswith(
        "cluster: the broker does not answer, nodes are as they were 54 s ago: 2 nodes, 3 units; tasks: "
    )
    assert as_text({"cluster": {**cluster, "broker_away_s": None}}) == as_text({"cluster": cluster})
    task = {"stream": "payments", "partitioner": "card"}
    unanswered = [{**task, "partition": partition} for partition in range(10)]
    assert (
        as_text({"cluster": {**cluster, "unanswered": unanswered[:1]}})
        .splitlines()[1]
        .endswith("0.2 s; WARNING: nobody answers 1 task: payments/card-0; 3 records could not be read")
    )
    many = as_text({"cluster": {**cluster, "unanswered": unanswered}}).splitlines()[1]
    assert "nobody answers 10 tasks: payments/card-0, payments/card-1, " in many
    assert "payments/card-7 and 2 more; " in many
    kept = as_text({"cluster": {**cluster, "log_retention_ms": 604_800_000}})
    assert "WARNING" not in kept
    losing = as_text({"cluster": {**cluster, "log_warning": "1 log will lose records"}}).splitlines()[1]
    assert "; WARNING: 1 log will lose records" in losing
    weak = as_text(
        {"cluster": {**cluster, "weak_topics": {"r.p.card": "it has no second replica", "r.p.all": "x"}}}
    )
    assert (
        "WARNING: the loss of one broker could lose events that were answered: r.p.card and 1 more, "
        "as it has no second replica"
    ) in weak.splitlines()[1]
    local = {**cluster, "weak_topics": {"r.p.card": "it has no second replica"}, "brokers": 1}
    assert as_text({"cluster": local}).splitlines()[1].endswith("; one broker, without replicas")
    assert "WARNING" not in as_text({"cluster": local})
    assert "WARNING" in as_text({"cluster": {**local, "brokers": 2}})
    empty = {"nodes": [], "tasks": {}, "lag": 0, "unreadable_records": 0, "pending_events": 0}
    assert as_text({"cluster": empty}).splitlines()[1] == (
        "cluster: 0 nodes, 0 units; tasks: none; 0 records behind; 0 events wait for answers"
    )
    ones = {**empty, "lag": 1, "unreadable_records": 1, "pending_events": 1}
    assert as_text({"cluster": ones}).splitlines()[1] == (
        "cluster: 0 nodes, 0 units; tasks: none; 1 record behind; 1 event waits for answers, the oldest for 0.0 s; "
        "1 record could not be read"
    )


def test_a_deepening_under_way() -> None:
    stream = {
        "name": "s",
        "deepening": {"cut_ms": 1_700_000_000_250, "state": "installing", "behind": 1_200},
    }
    lines = as_text({"streams": [stream]}).splitlines()
    assert lines[3] == (
        "  deepening until 2023-11-14T22:13:20.250Z: installing, 1,200 records behind; its log is kept meanwhile"
    )


def test_a_damaged_deepening_says_what_to_do() -> None:
    deepening = {"cut_ms": 0, "state": "damaged", "behind": 0, "failure": "x: it cannot be read; give it up"}
    lines = as_text({"streams": [{"name": "s", "deepening": deepening}]}).splitlines()
    assert lines[3] == "  deepening, damaged: x: it cannot be read; give it up; its log is kept meanwhile"


def test_the_other_copies_of_a_cluster_s_tasks() -> None:
    task = {
        "partitioner": "card",
        "partition": 0,
        "node": "a",
        "unit": 1,
        "state": "running",
        "position": 1_200,
        "lag": 0,
        "checkpoint": 1_000,
    }
    copies = [
        {"node": "a", "unit": 1, "state": "answering", "lag": 0},
        {"node": "b", "unit": 0, "state": "silent", "lag": 0},
        {"node": "c", "unit": 2, "state": "behind", "lag": 1_150},
    ]
    alone = as_text({"streams": [{"name": "s", "tasks": [{**task, "copies": copies[:1]}]}]}).splitlines()
    assert alone[-2:] == [
        "  task    node  unit  state    position  lag  checkpoint",
        "  card-0  a     1     running  1,200     0    1,000",
    ]
    log = {"start": 7, "needed": 900, "needed_by": "c/2", "left_ms": 500_000_000, "retention_ms": 604_800_000}
    for_ever = {**log, "needed": None, "left_ms": None, "retention_ms": None}
    with_logs = [
        {**task, "log": each, "copies": []} for each in (log, for_ever, {**log, "left_ms": None}, None)
    ]
    assert as_text({"streams": [{"name": "s", "tasks": with_logs}]}).splitlines()[-5:] == [
        "  task    node  unit  state    position  lag  checkpoint  log from  needed from  left",
        "  card-0  a     1     running  1,200     0    1,000       7         900          5 d 18 h",
        "  card-0  a     1     running  1,200     0    1,000       7         -            for ever",
        "  card-0  a     1     running  1,200     0    1,000       7         900          ?",
        "  card-0  a     1     running  1,200     0    1,000       ?         ?            ?",
    ]
    more = as_text({"streams": [{"name": "s", "tasks": [{**task, "copies": copies}]}]}).splitlines()
    assert more[-1].endswith("1,000       b/0 silent, c/2 behind by 1,150")


def test_what_does_not_answer_is_not_waited_for_in_silence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server_url, "_LATE_S", 0.1)
    monkeypatch.setattr(status, "_TIMEOUT_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        monkeypatch.setattr(status, "_PATIENCE_S", 0.0)
        assert main(["status", "--url", url]) == 2
        once = capsys.readouterr().err.splitlines()
        monkeypatch.setattr(status, "_PATIENCE_S", 2.0)
        assert main(["status", "--url", url]) == 2
        again = capsys.readouterr().err.splitlines()
    late = "railgun status: no answer after 0.1 s, still waiting; is that the address of a Railgun server?"
    assert once == [late, f"railgun status: {url}/v1/status: no answer within 1 s"]
    assert again[0] == late
    assert re.fullmatch(re.escape(once[1]) + r"; gave up after [23] s; the server's log says why", again[1])
    assert len(again) == 2
