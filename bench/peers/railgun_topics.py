"""This engine from topic to topic: `railgun serve --broker` with one unit, as users run it on one machine."""

import sys
import threading

from bench.peers.protocol import Task, when_input_ends
from bench.peers.railgun_unit import workload_of
from bench.process import end_in_order
from bench.service import Service


def main(task: Task) -> None:
    """Run front-end and node until the standard input ends."""
    ended = threading.Event()
    when_input_ends(ended.set)
    definitions = workload_of(task).definitions
    with Service(task.folder, definitions, "os", task.broker, prefix=task.prefix) as service:
        service.start()
        ended.wait()
        service.stop()


if __name__ == "__main__":
    end_in_order()
    main(Task.of_text(sys.argv[1]))
