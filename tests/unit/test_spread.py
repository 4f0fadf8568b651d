"""Which unit runs which task: every task somewhere, evenly, and no stream moves another one's tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import Change, DropStream, PutStream
from railgun.catalog.definitions import parse_definitions
from railgun.cluster.copies import CopyName
from railgun.config.kinds import ConfigError
from railgun.config.settings import ClusterSettings
from railgun.unit.configured import share_of, units_of
from railgun.unit.spread import Spread, spread


def _stream(name: str, partitions: int) -> PutStream:
    text = f"""
[streams.{name}]
id = "id"
partitioners = ["card", "*"]
partitions = {partitions}
[streams.{name}.fields]
id = "string"
card = "string"
"""
    return PutStream(1, parse_definitions(text).streams[name], 1)


def _catalog(changes: list[Change]) -> Catalog:
    catalog = Catalog()
    for change in changes:
        catalog.apply(change)
    return catalog


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 7), st.data())
def test_every_task_runs_somewhere_and_stays_there(
    partitions: list[int], units: int, data: st.DataObject
) -> None:
    changes: list[Change] = [
        PutStream(place, _stream(f"s{place}", count).stream, 1) for place, count in enumerate(partitions, 1)
    ]
    catalog = _catalog(changes)
    before = spread(catalog, units)
    assert len(before) == sum(count + 1 for count in partitions)
    for name in catalog.streams:
        shares = [
            sum(1 for key, unit in before.items() if key.stream == name and unit == u) for u in range(units)
        ]
        assert max(shares) - min(shares) <= 1
    mine = [key for unit in range(units) for key in Spread(unit, units, CopyName("n", unit)).mine(catalog)]
    assert sorted(mine) == sorted(before)
    dropped = data.draw(st.sampled_from(sorted(catalog.streams)))
    catalog.apply(DropStream(catalog.last_place + 1, dropped))
    after = spread(catalog, units)
    assert after == {key: unit for key, unit in before.items() if key.stream != dropped}
    # Made anew it is another one: its tasks have other folders.
    catalog.apply(PutStream(catalog.last_place + 1, _stream(dropped, 1).stream, 1))
    assert not {key for key in spread(catalog, units) if key.stream == dropped} & set(before)


@given(st.integers(1, 5), st.integers(1, 4))
def test_nodes_share_tasks_like_one_node_with_all_their_units(nodes: int, units: int) -> None:
    catalog = _catalog([_stream("s", 9)])
    mine = [
        key
        for node in range(nodes)
        for unit in range(units)
        for key in share_of(_cluster(node, nodes, units), CopyName(f"n{node}", unit), units).mine(catalog)
    ]
    assert sorted(mine) == sorted(spread(catalog, nodes * units))


def _cluster(node: int, nodes: int, units: int) -> ClusterSettings:
    return ClusterSettings(node_index=node, node_count=nodes, units=units)


def test_nodes_that_could_not_agree_are_refused() -> None:
    with pytest.raises(ConfigError, match="numbered from 0 on; there is no 2"):
        units_of(_cluster(2, 2, 1))
    with pytest.raises(ConfigError, match="the same for all"):
        units_of(_cluster(0, 2, 0))
    assert units_of(_cluster(1, 2, 3)) == 3
    assert units_of(_cluster(0, 1, 0)) >= 1
