"""Flink's hopping windows with an answer for each event, from topic to topic, for figure 8 of the paper.

    python -m bench.peers.flink_hop STATE_BACKEND SETUP HOP_MS TASK

The Java program flink/HoppingSums.java takes this process's place. Its values are not those of an exact window, so it
is not among the peers that are compared.
"""

import os
import sys

from bench.peers import flink_program, jars
from bench.peers.protocol import Task


def main(backend: str, setup: str, hop_ms: str, text: str) -> None:
    """Become the Java program."""
    task = Task.of_text(text)
    command = flink_program.command("HoppingSums", backend, setup, task.folder, jars.clients_class_path())
    (window_ms,) = task.windows_ms
    command += [task.broker, task.input, task.output, str(window_ms), hop_ms]
    os.execvp("java", command)


if __name__ == "__main__":
    main(*sys.argv[1:])
