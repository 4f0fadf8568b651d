"""Log records for machines: their keys, the names of loggers, the figures that records carry."""

import ast
import io
import json
import logging

from railgun.cli.serving import _say_serving
from railgun.config.settings import Settings
from railgun.logs.setup import fields, logging_as
from tests.golden.promises import held, masked
from tests.golden.sources import nodes


def test_records_as_json() -> None:
    stream = io.StringIO()
    with logging_as("debug", "json", stream):
        log = logging.getLogger("railgun.serve")
        log.info(
            "serving", extra=fields(url="http://127.0.0.1:8080", tasks=3, message="a field is no message")
        )
        for level in (logging.DEBUG, logging.WARNING, logging.ERROR, logging.CRITICAL):
            log.log(level, "it is %d", level)
        for on_kafka in (False, True):
            _say_serving("http://127.0.0.1:8080", Settings(), on_kafka=on_kafka)
        try:
            raise ValueError("why")
        except ValueError:
            logging.getLogger("uvicorn.error").exception("a defect")
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    held("log_records.json", masked(found, "time", "error", "version", "python", "pid"))


def test_names_of_loggers() -> None:
    found = set()
    for module, node in nodes("getLogger"):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "logging.getLogger" and node.args:
            found.add(ast.unparse(node.args[0]).strip("'").replace("__name__", module))
    held("loggers.json", sorted(found - {"name"}))


def test_figures_of_records() -> None:
    """The names of what is given to `fields` are keys of JSON."""
    name = fields.__name__
    found = [
        sorted(each.arg for each in node.keywords if each.arg)
        for _, node in nodes(f"{name}(")
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
        and node.keywords
    ]
    held("log_figures.json", sorted(found))
