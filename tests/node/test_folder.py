"""A node's data folder is its own, and holds nothing else."""

import os
import threading
from pathlib import Path

import pytest

from railgun.node.folder import NodeFolderError
from railgun.node.supervisor import Supervisor


def test_a_folder_is_one_nodes(tmp_path: Path) -> None:
    stopped, is_held = threading.Event(), threading.Event()
    # Ready, having no units, once it holds the folder: whoever tried it before that might keep it from being held.
    first = threading.Thread(target=Supervisor(tmp_path, []).run, args=[stopped, is_held.set])
    first.start()
    try:
        assert is_held.wait(60)
        with pytest.raises(NodeFolderError, match=f"another node, process {os.getpid()}, uses this folder"):
            Supervisor(tmp_path, []).run(stopped)
    finally:
        stopped.set()
        first.join()
    assert Supervisor(tmp_path, []).run(stopped)


def test_a_folder_that_holds_other_things_is_left_alone(tmp_path: Path) -> None:
    ended = threading.Event()
    ended.set()
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(NodeFolderError, match=r"it holds mine\.txt and other things, but no data of a node"):
        Supervisor(tmp_path, []).run(ended)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(NodeFolderError, match="no data folder can be made here"):
        Supervisor(tmp_path / "mine.txt", []).run(ended)
