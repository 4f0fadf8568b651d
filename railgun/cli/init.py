"""`railgun init`: draft a definitions file from a sample of events."""

import argparse
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from railgun.cli.failures import UsageError
from railgun.cli.parser import Command

if TYPE_CHECKING:
    from railgun.draft.draft import Draft
    from railgun.draft.sample import Sample

_RECORDS, _BYTES_MAX = 1_000, 64 << 20
_ANSWER_S = 10.0
_OUTPUT = "definitions.toml"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun init`."""
    parser.add_argument(
        "sample", metavar="SAMPLE", nargs="?", help="a file of events, as `railgun run` reads them"
    )
    parser.add_argument("--topic", metavar="T", help="a topic with events, in place of a file")
    parser.add_argument("--broker", metavar="HOST:PORT", help="its Kafka (default: 127.0.0.1:9092)")
    parser.add_argument(
        "--config", metavar="FILE", help="settings (TOML) to reach the broker and a schema registry"
    )
    parser.add_argument(
        "--stream", metavar="S", help="the stream's name (default: that of the file or topic)"
    )
    parser.add_argument(
        "--output", metavar="FILE", help="where the definitions go, a new file (default: standard output)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Write the definitions, then print what to do next. Raises UsageError, DraftError, FileError, ConfigError,
    DefinitionError, TransportError, OSError.
    """
    from railgun.catalog.names import check_stream_name
    from railgun.draft.draft import draft
    from railgun.draft.naming import stream_name

    if (arguments.sample is None) == (arguments.topic is None):
        raise UsageError("name a file of events, or a topic with --topic; one of them")
    output = None if arguments.output is None else Path(arguments.output)
    if output is not None and output.is_dir():
        raise UsageError(f"{output}: it is a folder; name a file with --output, such as {output / _OUTPUT}")
    if output is not None and output.exists():
        raise UsageError(f"{output}: it is there already, and is not overwritten; name another with --output")
    if arguments.stream is not None:
        check_stream_name(arguments.stream, ("--stream",))
    sample = _of_file(Path(arguments.sample)) if arguments.topic is None else _of_topic(arguments)
    place = Path(arguments.sample).stem if arguments.topic is None else arguments.topic
    made = draft(sample, arguments.stream or stream_name(place), time.time_ns() // 1_000_000)
    if output is None:
        print(made.text, end="")
    else:
        with output.open("x", encoding="utf-8") as file:
            file.write(made.text)
    print("\n".join(_next_lines(arguments, made)), file=sys.stderr)
    return 0


def _of_file(path: Path) -> "Sample":
    from railgun.draft.errors import DraftError
    from railgun.draft.sample import Sample
    from railgun.files.sampling import sample_file
    from railgun.wording import counted

    found = sample_file(path)
    if not found.documents:
        refused = sum(found.refused.values())
        why = f"none of its {counted(refused, 'row')} is an event" if refused else "it has no events"
        raise DraftError(f"{path}: {why}; name a file with some, one JSON object on each line for NDJSON")
    return Sample(str(path), found.documents, unread=found.refused, left_out=found.left_out)


def _of_topic(arguments: argparse.Namespace) -> "Sample":
    from frontend.formats.sampling import sample_of
    from frontend.formats.schemas import schemas_of
    from railgun.config.loading import settings_of
    from railgun.messaging.kafka.configured import kafka_settings
    from railgun.messaging.kafka.newest import newest_records

    settings = settings_of(arguments.config, arguments.broker)
    kafka = replace(kafka_settings(settings), answer_timeout_s=_ANSWER_S)
    messages = newest_records(kafka, arguments.topic, _RECORDS, _BYTES_MAX)
    return sample_of(arguments.topic, messages, schemas_of(settings.input))


def _next_lines(arguments: argparse.Namespace, made: "Draft") -> list[str]:
    """Return what was made, and the two commands that come next; of a topic also where replies will be."""
    from railgun.config.loading import settings_of
    from railgun.registry.topics import Topics
    from railgun.wording import counted

    file = shlex.quote(arguments.output or _OUTPUT)
    what = f"stream {made.stream} with {counted(made.fields, 'field')}, of {counted(made.events, 'event')}"
    beside = f"; {counted(made.refused, 'record')} would not be taken" if made.refused else ""
    lines = [f"railgun init: {what}{beside}; look it through, then:"]
    if arguments.topic is None:
        bad = " --skip-bad" if made.refused else ""
        lines.append(f"  railgun run {file} {shlex.quote(arguments.sample)} --out scores.parquet{bad}")
        lines.append(f"  railgun serve --data data --definitions {file}")
        return lines
    broker = "" if arguments.broker is None else f" --broker {shlex.quote(arguments.broker)}"
    config = "" if arguments.config is None else f" --config {shlex.quote(arguments.config)}"
    lines.append(f"  railgun node --data data{broker}{config}")
    lines.append(f"  railgun frontend{broker}{config} --definitions {file}")
    topics = Topics(settings_of(arguments.config, arguments.broker).cluster.topic_prefix)
    replies, dead = topics.output(made.stream), topics.dead(made.stream)
    lines.append(f"Replies come to the topic {replies}, and what cannot be used to {dead}.")
    return lines


INIT = Command(
    name="init",
    summary="draft a definitions file from a file of events or a topic",
    description=(
        "Look at the first 10,000 events of a file, or at the newest 1,000 records of a topic, and write a\n"
        "definitions file to begin with: fields with types and paths, the time with its unit, partitioners,\n"
        "lateness, three metrics. Comments say why, in shares and counts; no value of an event is written.\n"
        "What is left out, or could be chosen as well, is there as a comment. Look it through before use:\n"
        "paths and units of time, id and partitioners are fixed once a stream is created.\n\n"
        "Topics: JSON; Avro, Protobuf and JSON Schema in Confluent's framing (--config names the registry);\n"
        "changes by Debezium, and Connect's envelope. It is read without a group, and nothing is committed.\n"
        "An id stays a comment there: where one comes twice, the second event would not count.\n\n"
        "The file is new: what is there is not overwritten. The last lines, on standard error, are the two\n"
        "commands that come next, and for a topic where replies will be."
    ),
    example="railgun init events.ndjson --output definitions.toml\n"
    "  railgun init --broker 127.0.0.1:9092 --topic prod.payments.v2 --output definitions.toml",
    configure=configure,
    execute=execute,
)
