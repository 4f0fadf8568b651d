"""Every metric for monitoring: its name, kind, labels and meaning. docs/telemetry.md lists the same ones."""

from dataclasses import dataclass
from enum import StrEnum


class FamilyKind(StrEnum):
    """The kind of a metric in Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """A metric for monitoring.

    name: the name that is scraped; that of a counter ends in `_total`.
    kind: counter, gauge or histogram.
    labels: the names of its labels, whose values are bounded by what is registered.
    says: what it means, as its HELP line says.
    """

    name: str
    kind: FamilyKind
    labels: tuple[str, ...]
    says: str


_STREAM, _TASK = ("stream",), ("stream", "partitioner", "partition")
_STAGE = (*_STREAM, "stage")

_BUILD = Family("railgun_build_info", FamilyKind.GAUGE, ("version",), "1, with the version that runs here")
PROCESS = (
    Family(
        "railgun_ready",
        FamilyKind.GAUGE,
        (),
        "1 when events are taken, 0 while starting, stopping or stopped",
    ),
    Family(
        "railgun_reading_age_seconds",
        FamilyKind.GAUGE,
        (),
        "age of what is said of tasks: they are read about once a second, between two batches",
    ),
)

IN_FLIGHT = (
    Family(
        "railgun_in_flight_events", FamilyKind.GAUGE, (), "events taken from clients and not answered yet"
    ),
    Family("railgun_in_flight_bytes", FamilyKind.GAUGE, (), "their bytes"),
)

ACCESS = (
    Family(
        "railgun_requests_refused_total",
        FamilyKind.COUNTER,
        ("status",),
        "requests refused for who asks, or by which name",
    ),
)

TLS = (
    Family(
        "railgun_certificate_end_seconds",
        FamilyKind.GAUGE,
        ("kind",),
        "when it runs out, in seconds since 1970, and nobody is let in by it any more",
    ),
    Family(
        "railgun_handshakes_total",
        FamilyKind.COUNTER,
        ("outcome",),
        "handshakes of TLS, by what became of them",
    ),
)

DISK = (
    Family(
        "railgun_disk_bytes", FamilyKind.GAUGE, ("kind",), "bytes in files: events (segments), state, log"
    ),
    Family("railgun_disk_free_bytes", FamilyKind.GAUGE, (), "bytes left where the data folder is"),
)

TRAFFIC = (
    Family("railgun_events_total", FamilyKind.COUNTER, _STREAM, "events taken and answered"),
    Family(
        "railgun_events_refused_total",
        FamilyKind.COUNTER,
        (*_STREAM, "reason"),
        "events not taken, by reason",
    ),
    Family(
        "railgun_events_late_total",
        FamilyKind.COUNTER,
        (*_STREAM, "partitioner", "outcome"),
        "events behind the floor of their task: rewritten or discarded",
    ),
    Family(
        "railgun_events_duplicate_total",
        FamilyKind.COUNTER,
        (*_STREAM, "partitioner"),
        "events whose id was known already: answered, not counted again",
    ),
    Family("railgun_batch_events", FamilyKind.HISTOGRAM, _STREAM, "events scored together"),
    Family("railgun_stage_seconds", FamilyKind.HISTOGRAM, _STAGE, "where the time of a batch goes"),
    Family(
        "railgun_value_queries_total",
        FamilyKind.COUNTER,
        (*_STREAM, "outcome"),
        "value queries: answered, refused, timeout or unavailable",
    ),
    Family("railgun_value_query_seconds", FamilyKind.HISTOGRAM, _STREAM, "how long value queries took"),
)

FRONT_END = (
    Family(
        "railgun_pending_events",
        FamilyKind.GAUGE,
        (),
        "events published and not answered by all partitioners yet; at the bound clients get 503",
    ),
    Family("railgun_pending_bytes", FamilyKind.GAUGE, (), "what they hold in memory, about"),
    Family("railgun_pending_oldest_seconds", FamilyKind.GAUGE, (), "how long the oldest of them has waited"),
    Family(
        "railgun_replies_total", FamilyKind.COUNTER, ("outcome",), "answers of tasks, by what became of them"
    ),
)

ANSWERED = (
    Family(
        "railgun_tasks_unanswered",
        FamilyKind.GAUGE,
        _STREAM,
        "tasks of which no copy was heard answering for 15 s: events that need them are not answered",
    ),
)

LOGS = (
    Family(
        "railgun_log_start_position",
        FamilyKind.GAUGE,
        _TASK,
        "the first offset that the broker has of the log",
    ),
    Family(
        "railgun_log_needed_position",
        FamilyKind.GAUGE,
        _TASK,
        "the least position of its copies' last checkpoints: from here on the log is needed",
    ),
    Family(
        "railgun_log_left_seconds",
        FamilyKind.GAUGE,
        _TASK,
        "how long the broker keeps the record there, at least; left out where it is kept for ever, or not known",
    ),
)

TASK = (
    Family("railgun_task_position", FamilyKind.GAUGE, _TASK, "offset of the next record that the task takes"),
    Family("railgun_task_checkpoint_position", FamilyKind.GAUGE, _TASK, "what the last checkpoint covers"),
    Family("railgun_task_clock_seconds", FamilyKind.GAUGE, _TASK, "event time, in seconds since 1970"),
    Family(
        "railgun_unreadable_records_total",
        FamilyKind.COUNTER,
        _TASK,
        "records skipped because they are damaged",
    ),
    Family("railgun_checkpoints_total", FamilyKind.COUNTER, _TASK, "checkpoints that became durable"),
    Family("railgun_checkpoint_last_seconds", FamilyKind.GAUGE, _TASK, "how long the last checkpoint took"),
    Family(
        "railgun_state_written_bytes_total",
        FamilyKind.COUNTER,
        _TASK,
        "state written, by checkpoints and evictions",
    ),
    Family("railgun_rows", FamilyKind.GAUGE, _TASK, "entity rows in memory"),
    Family("railgun_rows_bytes", FamilyKind.GAUGE, _TASK, "memory of entity rows"),
    Family(
        "railgun_rows_loaded_total",
        FamilyKind.COUNTER,
        _TASK,
        "rows that were not in memory and had to be read",
    ),
    Family("railgun_rows_evicted_total", FamilyKind.COUNTER, _TASK, "rows that made room for others"),
    Family("railgun_pages_bytes", FamilyKind.GAUGE, _TASK, "memory of pages: trees, strings, wide sums"),
    Family("railgun_page_operations_total", FamilyKind.COUNTER, _TASK, "operations on pages"),
    Family(
        "railgun_page_faults_total",
        FamilyKind.COUNTER,
        _TASK,
        "pages that were not in memory and had to be read",
    ),
    Family("railgun_chunks", FamilyKind.GAUGE, _TASK, "sealed chunks since the stream began"),
    Family("railgun_chunks_pending", FamilyKind.GAUGE, _TASK, "sealed chunks that are not written yet"),
    Family("railgun_chunk_cache_bytes", FamilyKind.GAUGE, _TASK, "memory of decoded chunks"),
    Family(
        "railgun_chunk_hits_total",
        FamilyKind.COUNTER,
        _TASK,
        "times a cursor entered a chunk read ahead for it",
    ),
    Family("railgun_chunk_misses_total", FamilyKind.COUNTER, _TASK, "times a cursor had to wait for a chunk"),
    Family("railgun_chunks_wasted_total", FamilyKind.COUNTER, _TASK, "chunks read ahead and never entered"),
    Family(
        "railgun_open_rows", FamilyKind.GAUGE, _TASK, "events in memory that wait to be sealed into a chunk"
    ),
    Family("railgun_open_bytes", FamilyKind.GAUGE, _TASK, "memory of those events"),
    Family("railgun_metrics", FamilyKind.GAUGE, _TASK, "metrics that the task computes"),
    Family("railgun_metrics_warming", FamilyKind.GAUGE, _TASK, "metrics that do not answer yet"),
    Family(
        "railgun_fill_ratio",
        FamilyKind.GAUGE,
        _TASK,
        "how much of their history warming metrics have read, on average; 1: none is warming",
    ),
)

INPUT = (
    Family("railgun_input_events_total", FamilyKind.COUNTER, _STREAM, "events of input topics answered"),
    Family(
        "railgun_dead_letters_total",
        FamilyKind.COUNTER,
        _STREAM,
        "records of input topics that could not be used, now in the topic of dead letters; without late events",
    ),
    Family(
        "railgun_input_skipped_total",
        FamilyKind.COUNTER,
        (*_STREAM, "topic"),
        "records that have no value, or that `where` leaves out: they get neither a reply nor a letter",
    ),
    Family(
        "railgun_input_sampled_records_total",
        FamilyKind.COUNTER,
        (*_STREAM, "topic"),
        "records that were looked at for the next figure: one of those read together, and ten a second at most",
    ),
    Family(
        "railgun_input_path_misses_total",
        FamilyKind.COUNTER,
        (*_STREAM, "topic", "field"),
        "those among them in which the field's path met nothing, or null",
    ),
    Family(
        "railgun_input_in_flight_events",
        FamilyKind.GAUGE,
        _STREAM,
        "read, and their replies not written yet",
    ),
    Family("railgun_input_partitions", FamilyKind.GAUGE, _STREAM, "partitions that this front-end has"),
    Family(
        "railgun_input_rebalances_total",
        FamilyKind.COUNTER,
        _STREAM,
        "times that the group of front-ends gave out its partitions anew",
    ),
    Family(
        "railgun_input_lag_records",
        FamilyKind.GAUGE,
        (*_STREAM, "topic", "partition"),
        "records that wait to be read",
    ),
    Family(
        "railgun_input_stage_seconds",
        FamilyKind.HISTOGRAM,
        _STAGE,
        "where the time of records read together goes",
    ),
)

UNIT_TASK = (
    Family(
        "railgun_task_state",
        FamilyKind.GAUGE,
        (*_TASK, "state"),
        "1: recovering, running, silent (another copy answers) or failed",
    ),
    Family(
        "railgun_task_lag_records",
        FamilyKind.GAUGE,
        _TASK,
        "records of its log that the task has not taken yet",
    ),
    Family(
        "railgun_task_replied_position",
        FamilyKind.GAUGE,
        _TASK,
        "all before this offset is answered, and the answers are acknowledged",
    ),
)

UNIT = (
    Family("railgun_rebalances_total", FamilyKind.COUNTER, (), "times that the unit was given other tasks"),
    Family("railgun_unit_records_total", FamilyKind.COUNTER, (*_STREAM, "partitioner"), "records taken"),
    Family("railgun_unit_batch_records", FamilyKind.HISTOGRAM, _STREAM, "records taken together"),
    Family(
        "railgun_unit_stage_seconds", FamilyKind.HISTOGRAM, _STAGE, "where the time of a batch goes in a unit"
    ),
    Family("railgun_reply_records_total", FamilyKind.COUNTER, (), "records with replies that were sent"),
    Family(
        "railgun_value_answers_total",
        FamilyKind.COUNTER,
        (),
        "records with answers to value queries that were sent",
    ),
    Family(
        "railgun_reply_records_dropped_total",
        FamilyKind.COUNTER,
        (),
        "those to front-ends whose topic is gone, or takes none",
    ),
)

NODE = (
    Family("railgun_node_units", FamilyKind.GAUGE, (), "units that the node runs"),
    Family(
        "railgun_node_unit_up",
        FamilyKind.GAUGE,
        ("unit",),
        "1 when the unit runs, was heard within 5 s, and has caught up",
    ),
    Family(
        "railgun_node_unit_starts_total", FamilyKind.COUNTER, ("unit",), "times that the unit was started"
    ),
    Family(
        "railgun_node_clock_ahead_seconds",
        FamilyKind.GAUGE,
        (),
        "how far the clock of the node's machine is ahead of the brokers'; below 0: behind",
    ),
    Family(
        "railgun_cluster_leads",
        FamilyKind.GAUGE,
        (),
        "1 when the node leads; those below are of this node alone",
    ),
    Family(
        "railgun_cluster_tasks_short",
        FamilyKind.GAUGE,
        (),
        "tasks of which fewer copies than are wanted could answer",
    ),
    Family("railgun_cluster_copies_lost", FamilyKind.GAUGE, (), "copies given up though their nodes live"),
    Family(
        "railgun_cluster_copies_to_make",
        FamilyKind.GAUGE,
        (),
        "copies that are to be made, or have not caught up yet",
    ),
    Family(
        "railgun_cluster_logs_short",
        FamilyKind.GAUGE,
        (),
        "logs that are to lose records a copy's checkpoint needs, with less than half of the retention left",
    ),
    Family(
        "railgun_cluster_copies_fetching",
        FamilyKind.GAUGE,
        (),
        "copies whose data comes from another node just now",
    ),
    Family(
        "railgun_cluster_copies_waiting",
        FamilyKind.GAUGE,
        (),
        "copies that wait for their turn to fetch their data from another node",
    ),
    Family(
        "railgun_transfer_served_bytes_total",
        FamilyKind.COUNTER,
        (),
        "bytes of snapshots that were sent to other nodes since the transfer process began, as those below",
    ),
    Family(
        "railgun_transfer_fetched_bytes_total",
        FamilyKind.COUNTER,
        (),
        "bytes of snapshots that were fetched from other nodes",
    ),
    Family("railgun_transfer_fetches_running", FamilyKind.GAUGE, (), "fetches of tasks' data that run now"),
    Family(
        "railgun_transfer_fetches_total",
        FamilyKind.COUNTER,
        (),
        "fetches that have ended with the data there",
    ),
    Family("railgun_transfer_fetches_failed_total", FamilyKind.COUNTER, (), "fetches that have failed"),
)

SERVED = (_BUILD, *PROCESS, *IN_FLIGHT, *DISK, *TRAFFIC, *TASK)
"""The metrics of every HTTP server, beside ACCESS. A server with TLS also has TLS; a front-end on Kafka also has
FRONT_END, ANSWERED, LOGS and INPUT.
"""
IN_UNIT = (*PROCESS, *TASK, *UNIT_TASK, *UNIT)
ON_NODE = (_BUILD, *DISK, *NODE)
"""The metrics of a node beside those of its units."""
FAMILIES = (
    *SERVED[: -len(TASK)],
    *(*ACCESS, *TLS, *FRONT_END, *ANSWERED, *LOGS, *INPUT),
    *(*TASK, *UNIT_TASK, *UNIT, *NODE),
)
"""All metrics, as docs/telemetry.md lists them."""
