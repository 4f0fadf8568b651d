"""A process that injects its share of a schedule. It prepares, reports that, and begins at a given moment.

python -m bench.load.worker: the order as JSON on the first line of standard input, the moment on the second.
"""

import gc
import sys
from collections.abc import Callable

import msgspec

from bench.children import say
from bench.load.http_driver import HttpDriver
from bench.load.http_requests import EventRequests
from bench.load.kafka_driver import KafkaDriver
from bench.load.lines import Lines, payment_lines
from bench.load.order import Order
from bench.load.outcome import Trace
from bench.process import end_in_order


def main() -> None:
    """Serve one order."""
    end_in_order()
    order = msgspec.json.decode(sys.stdin.readline(), type=Order)
    run = _prepared(order)
    schedule = order.schedule
    own = slice(order.worker, None, order.workers)
    due_ns, phase_of = schedule.due_ns()[own], schedule.phase_of()[own]
    gc.collect()
    gc.freeze()
    gc.disable()
    say({"ready": len(due_ns)})
    start_ns = int(sys.stdin.readline())
    end_ns = start_ns + int((schedule.seconds + order.grace_s) * 1e9)
    trace = Trace(due_ns + start_ns, phase_of, order.events_each)
    run(trace, end_ns)
    say(trace.outcome(len(schedule.phases), end_ns).to_json())


def _prepared(order: Order) -> Callable[[Trace, int], None]:
    """Return the function that sends the requests of an order and notes their outcomes, up to a moment."""
    lines = _own_lines(order)
    if order.is_topic:
        topic = KafkaDriver(f"{order.host}:{order.port}", order.path, order.first_event)
        return lambda trace, end_ns: topic.run(lines, trace, end_ns)
    requests = EventRequests(lines, order.events_each, order.host, order.path, ndjson=order.ndjson)
    driver = HttpDriver(order.host, order.port, order.connections, order.ca)
    return lambda trace, end_ns: driver.run(requests, trace, end_ns)


def _own_lines(order: Order) -> Lines:
    """Return the lines of this worker's requests."""
    whole = payment_lines(order.payments, order.first_event, order.events)
    if order.workers == 1:
        return whole
    each = order.events_each
    pieces, lengths = [], []
    for place in range(order.worker, order.schedule.requests, order.workers):
        bounds = whole.offsets[place * each : (place + 1) * each + 1]
        pieces.append(whole.buffer[int(bounds[0]) : int(bounds[-1])])
        lengths += (bounds[1:] - bounds[:-1]).tolist()
    return Lines.of(b"".join(pieces), lengths)


if __name__ == "__main__":
    main()
