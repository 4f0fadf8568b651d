"""The data source as Spark jobs name it: columns, options, and the offsets in checkpoints of streaming jobs."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from railgun.catalog.definitions import parse_definitions
from railgun.spark.errors import OptionError
from railgun.spark.tables.columns import all_columns
from railgun.spark.tables.options import SourceKind, read_options
from railgun.spark.tables.source import FORMAT, RailgunSource
from tests.golden.promises import held
from tests.golden.stream import DEFINITIONS
from tests.spark.folders import filled


def test_columns() -> None:
    types = parse_definitions(DEFINITIONS).streams["payments"].types
    found: dict[str, Any] = {}
    for doing, prefix, as_long in (("read", "", False), ("read with prefix and times as long", "log_", True)):
        columns = all_columns(types, prefix, times_as_long=as_long)
        found[doing] = [f"{each.name}: {each.dataType.simpleString()}" for each in columns]
    held("spark_columns.json", found)


def test_options() -> None:
    with pytest.raises(OptionError) as refused:
        read_options({"qqqqqqqqqqqqqqqqqqqq": ""})
    options = str(refused.value).partition("there are ")[2].split(", ")
    held("spark_options.json", {"format": FORMAT, "options": options, "source": list(SourceKind)})


def test_offsets_of_a_stream(tmp_path: Path) -> None:
    """They are in the checkpoint folders of users' jobs."""
    with closing(filled(tmp_path / "data", 20)):
        source = RailgunSource({"path": str(tmp_path / "data"), "partitioner": "card"})
        reader = source.streamReader(source.schema())
        try:
            start = reader.initialOffset()
            end = reader.latestOffset(start, reader.getDefaultReadLimit())
        finally:
            reader.stop()
    held("spark_offsets.json", json.loads(json.dumps([start, end])))
