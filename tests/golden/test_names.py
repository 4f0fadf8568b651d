"""Names of topics, and names that the docs tell Python programs to call."""

import inspect
from importlib import import_module
from typing import Any

from railgun.catalog.definitions import parse_definitions
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import Topics, topic_of
from tests.golden.promises import held
from tests.golden.stream import DEFINITIONS

_CLIENT = (
    *("score", "score_batch", "score_all", "score_lines", "values", "streams", "stream", "metrics"),
    *("create_stream", "evolve_stream", "drop_stream", "add_metrics", "drop_metric", "whoami", "status"),
    *("plan", "answered", "live", "samples", "dead", "is_ready", "bundle", "close"),
)

# Of README.md and docs/: where each is imported from, and the methods that are named there.
DOCUMENTED = {
    "railgun Engine": ("apply", "score", "score_table", "begin_deepening", "deepen", "drop_stream", "close"),
    "railgun EngineError": (),
    "railgun Client": _CLIENT,
    "railgun AsyncClient": _CLIENT,
    "railgun ClientError": (),
    "railgun ConnectionLostError": (),
    "railgun ProblemError": (),
    "railgun UnreachableError": (),
    "railgun.spark register": (),
    "railgun.spark.backfill.target BackfillRequest": (),
    "railgun.spark.backfill.source HistorySource": ("of",),
    "railgun.spark.backfill.engine BackfillOfEngine": ("build", "install"),
    "railgun.spark.backfill.engine DeepeningOfEngine": ("build", "install", "give_up"),
    "railgun.spark.backfill.cluster BackfillOfCluster": ("build", "install"),
    "railgun.spark.backfill.service DeepeningOfService": ("build", "install", "give_up"),
    "railgun.spark_submit main": (),
    "railgun.cli.main main": (),
}


def test_topics() -> None:
    topics, stream = Topics("prefix"), parse_definitions(DEFINITIONS).streams["payments"]
    held(
        "topics.json",
        {
            "catalogue": topics.catalog,
            "positions": topics.positions,
            "how far inputs are read": topics.inputs,
            "replies to front-end 7": topics.replies(7),
            "input, and its group": topics.input("payments"),
            "output": topics.output("payments"),
            "dead letters": topics.dead("payments"),
            "of tasks": topics.of_tasks(stream),
            "of an embedded log": [topic_of("payments", "card"), topic_of("payments", "*")],
            "key of a position": str(TopicPartition(topics.tasks("payments", "card"), 2)),
        },
    )


def parameters(called: Any) -> str:
    """As a call may name them; `=` behind those that may be left out."""
    found, is_keyword = [], False
    for each in inspect.signature(called).parameters.values():
        if each.kind is each.KEYWORD_ONLY and not is_keyword:
            found.append("*")
            is_keyword = True
        found.append(each.name + ("=" if each.default is not each.empty else ""))
    return ", ".join(found)


def test_what_python_programs_call() -> None:
    found: dict[str, Any] = {}
    for where, names in DOCUMENTED.items():
        module, _, name = where.partition(" ")
        kind = getattr(import_module(module), name)
        called = {} if isinstance(kind, type) and issubclass(kind, Exception) else {"": parameters(kind)}
        found[where] = called | {each: parameters(getattr(kind, each)) for each in names}
    held("python_names.json", found)
