"""A node's name and the id of its folder outlive a start; a file that cannot be read is an error with a remedy."""

import platform
from pathlib import Path

import pytest

from railgun.node.identity import IdentityError, node_identity


def test_the_folder_keeps_the_name_and_the_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "container-1")
    first = node_identity(tmp_path, "auto")
    assert first.name == "container-1"
    monkeypatch.setattr(platform, "node", lambda: "container-2")
    assert node_identity(tmp_path, "auto") == first
    named = node_identity(tmp_path, "blue")
    assert (named.name, named.folder) == ("blue", first.folder)
    (tmp_path / "other").mkdir()
    assert node_identity(tmp_path / "other", "auto").folder != first.folder


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "node.json").write_text("{")
    with pytest.raises(IdentityError, match=r"node\.json: it cannot be read: .*delete it"):
        node_identity(tmp_path, "auto")


@pytest.mark.parametrize("name", ["a/b", "-a", "a b", ""])
def test_a_name_that_cannot_be_one_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(IdentityError, match=r"cluster\.node_name: .*letters"):
        node_identity(tmp_path, name)


def test_a_name_that_is_too_long_is_called_so(tmp_path: Path) -> None:
    assert node_identity(tmp_path, "x" * 200).name == "x" * 200
    with pytest.raises(IdentityError, match=r"node_name: 'x{80}'… has 201 characters; .* 200 at most"):
        node_identity(tmp_path, "x" * 201)
