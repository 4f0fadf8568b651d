"""Logs: one line per record, the same for libraries; text for people, JSON for machines."""

import io
import json
import logging

import pytest

from railgun.logs.setup import fields, logging_as


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def said(level: str = "info", form: str = "auto", stream: io.StringIO | None = None) -> list[str]:
    stream = stream or io.StringIO()
    with logging_as(level, form, stream):
        logging.getLogger("railgun.x").info(
            "served %d", 3, extra=fields(url="http://h", why="a b", level="x")
        )
        logging.getLogger("uvicorn.error").warning("two\nlines")
        logging.getLogger("uvicorn.access").info("a request")
        logging.getLogger("railgun.x").debug("small")
        try:
            raise ValueError("wrong")
        except ValueError:
            logging.getLogger("railgun.x").exception("failed")
    return stream.getvalue().splitlines()


def test_json_is_one_object_per_line() -> None:
    first, second, third = map(json.loads, said())
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info", "logger": "railgun.x", "message": "served 3", "url": "http://h", "why": "a b",
    }  # fmt: skip
    assert (second["logger"], second["level"], second["message"]) == ("uvicorn", "warning", "two\nlines")
    assert third["error"].endswith("ValueError: wrong")


def test_text_is_for_terminals() -> None:
    lines = said(stream=Terminal())
    assert lines[0].endswith(' info    railgun.x: served 3 url=http://h why="a b" level=x')
    assert lines[1].endswith(" warning uvicorn: two\\nlines")
    assert lines[2].endswith(" error   railgun.x: failed")
    assert lines[-1] == "ValueError: wrong"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_nothing_reaches_a_terminal_that_it_could_obey(stream: io.StringIO) -> None:
    with logging_as("info", "auto", stream):
        logging.getLogger("railgun.x").info("a\x1b[2J\r\x07b\x7f\x9b", extra=fields(who="c\x1b]0;d"))
    said = stream.getvalue().removesuffix("\n")
    assert said.isprintable()
    assert [each in said for each in "abcd"] == [True] * 4


@pytest.mark.parametrize(
    ("form", "stream", "is_json"), [("text", io.StringIO(), False), ("json", Terminal(), True)]
)
def test_the_form_can_be_chosen(form: str, stream: io.StringIO, is_json: bool) -> None:
    assert said(form=form, stream=stream)[0].startswith("{") is is_json


@pytest.mark.parametrize(("level", "count"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_levels(level: str, count: int) -> None:
    assert len(said(level=level)) == count


def test_it_ends_with_the_block() -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    said(level="debug")
    assert (root.handlers, root.level) == before
