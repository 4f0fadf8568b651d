"""Control records of tasks' logs and entries of the catalogue: maps that every later version must read."""

from dataclasses import replace

import msgspec

from railgun.catalog.changes import AddDerived, AddMetric, Change, PutStream, change_from_json, change_to_json
from railgun.catalog.definitions import define_metric, parse_definitions
from railgun.catalog.input_format import InputFormat
from railgun.catalog.model import LOGS_FOREVER, InputDefinition, OutputDefinition, ReplyKey
from railgun.language.computed import resolve_computed
from railgun.language.parser import parse_query
from railgun.language.resolve import resolve
from railgun.language.zones import zone_of
from railgun.plan.hot import text_of
from railgun.registry.entries import CatalogState, begin_entry, done_entry, removed_entry, topic_entry
from railgun.registry.input_topics import InputTopic, MappedFrom
from railgun.registry.origin import Made, Origin
from railgun.wire.control_records import decode_control, encode_control
from railgun.wire.path import parse_path
from tests.golden.promises import expected, held
from tests.golden.stream import DEFINITIONS, changes

MADE = Made(1_700_000_000_000, Origin("deploy", "192.0.2.7"))
KEY, AUTHOR, DUE_MS = bytes(range(16)), "0123456789abcdef", 1_700_000_060_000


def test_changes_as_control_records_have_them() -> None:
    held("changes.json", [decode_control(encode_control(change_to_json(each))) for each in changes()])


def test_changes_are_read_back() -> None:
    streams = parse_definitions(DEFINITIONS).streams
    read = [change_from_json(body, streams) for body in expected("changes.json")]
    assert read == changes()


def test_a_metric_brings_its_time_zones() -> None:
    """A table of the package would change with its releases."""
    stream = parse_definitions(DEFINITIONS).streams["payments"]
    query = "SELECT count(*) AS noons FROM payments WHERE HOUR(ts IN 'Europe/Lisbon') = 12 OVER INFINITE"
    zone = zone_of("Europe/Lisbon", (-2205, ((-1830382395, 0), (1743296400, 3600))))
    (resolved,) = resolve(parse_query(query), stream.types, stream.name, {zone.name: zone}.get)
    add = AddMetric(7, define_metric(resolved, stream, ("sql",)))
    held("zones.json", [decode_control(encode_control(change_to_json(add))), text_of(resolved.predicate)])
    (body, _) = expected("zones.json")
    assert change_from_json(body, {stream.name: stream}) == add


CONSTRUCTS = """
[[metrics]]
sql = '''select sum(amount) as before, count(*) filter (where ok) as good_before
  from payments where n > 1 group by card over sliding 1 hour exclude current'''
[[metrics]]
sql = "SELECT count(*) FILTER (WHERE ok OR n > 7) AS good FROM payments OVER TUMBLING 1 DAY DELAYED BY 1 HOUR"
[[metrics]]
sql = "DERIVE amount / before AS times, COALESCE(good, 0) > 3 AS many FROM payments"
"""


def test_what_excludes_has_conditions_or_is_derived() -> None:
    """EXCLUDE CURRENT and FILTER are in the text of a metric alone; a derived metric has a record of its own."""
    definitions = parse_definitions(DEFINITIONS + CONSTRUCTS)
    adds: list[Change] = [AddMetric(place, each) for place, each in enumerate(definitions.metrics[2:], 5)]
    adds += [
        AddDerived(place, each.stream, each.name, each.sql)
        for place, each in enumerate(definitions.derived, 8)
    ]
    held("constructs.json", [decode_control(encode_control(change_to_json(each))) for each in adds])
    assert [change_from_json(body, definitions.streams) for body in expected("constructs.json")] == adds
    assert [add.metric.resolved.excludes_current for add in adds if isinstance(add, AddMetric)] == [
        True,
        True,
        False,
    ]


def entries() -> dict[str, bytes]:
    """Every form of an entry, by what it is."""
    put, drop = changes()[0], changes()[-1]
    add = changes()[2]
    assert isinstance(put, PutStream)
    assert isinstance(add, AddMetric)
    return {
        "a stream begins": begin_entry(put, Made(), KEY),
        "a metric begins": begin_entry(add, Made()),
        "a metric begins, by whom": begin_entry(add, MADE),
        "done": done_entry(3),
        "a stream begins in a cluster": begin_entry(put, Made(), KEY, AUTHOR),
        "a stream is dropped in a cluster": begin_entry(drop, Made(), None, AUTHOR, DUE_MS),  # type: ignore[arg-type]
        "topics are removed": removed_entry(10),
        "a stream begins that says how long its logs are kept": begin_entry(
            keeping(put, 604_800_000), Made(), KEY
        ),
        "a stream takes back how long its logs are kept": begin_entry(
            put, Made(), before=keeping(put, 604_800_000).stream
        ),
        "a stream begins that says where events have its fields": begin_entry(placed(put), Made(), KEY),
        "a stream begins with computed fields": begin_entry(computing(put), Made(), KEY),
        "a stream begins that says how its input is read": begin_entry(formatted(put), Made(), KEY),
        "a stream begins that says from which topics its events come": begin_entry(fed(put), Made(), KEY),
        "a topic has a number": topic_entry(1, TOPIC)[1],
        "a stream gets another mapping": begin_entry(moved(put), Made(), before=put.stream),
        "a topic is read by another mapping": topic_entry(1, MAPPED)[1],
        "a stream begins that says where its replies go": begin_entry(put_out(put), Made(), KEY),
    }


LISBON = zone_of("Europe/Lisbon", (-2205, ((-1830382395, 0), (1743296400, 3600))))


def computing(put: PutStream) -> PutStream:
    """The change with computed fields, one of which names a time zone."""
    made = resolve_computed(
        {"hour": "HOUR(ts IN 'Europe/Lisbon')", "late": "hour > 20"},
        put.stream.types,
        put.stream.name,
        lambda _: {LISBON.name: LISBON}.get,
    )
    return replace(put, stream=replace(put.stream, computed=tuple(made)))


def formatted(put: PutStream) -> PutStream:
    """The change with a format of the input."""
    found = InputFormat("protobuf", "CgA=", "shop.Payment")
    return replace(put, stream=replace(put.stream, input=InputDefinition(format=found)))


TOPIC = InputTopic("prod.payments.v2", "AAAAAAAAAAAAAAAAAAAAAQ", 77, (12, 0, 5), is_remade=True)

MAPPED = replace(TOPIC, starts=(), is_remade=False, mappings=(MappedFrom(4), MappedFrom(9, (40, 0, 17))))


def fed(put: PutStream) -> PutStream:
    """The change with input topics, a time to start at, and a condition that names a time zone."""
    zones = {LISBON.name: LISBON}
    (where,) = resolve_computed(
        {"where": "HOUR(ts IN 'Europe/Lisbon') < 6"}, put.stream.types, put.stream.name, lambda _: zones.get
    )
    read = InputDefinition(("a", "b.c"), 1_700_000_000_000, where)
    return replace(put, stream=replace(put.stream, input=read))


def placed(put: PutStream) -> PutStream:
    """The change with a path and a unit."""
    first, second, *others = put.stream.fields
    fields = (replace(first, path=parse_path("a[0]['b-c']")), replace(second, unit="s"), *others)
    return replace(put, stream=replace(put.stream, fields=fields))


def moved(put: PutStream) -> PutStream:
    """The change with another path of a field that is neither time nor id nor a partitioner."""
    fields = [
        replace(each, path=parse_path("a.n")) if each.name == "n" else each for each in put.stream.fields
    ]
    return replace(put, stream=replace(put.stream, fields=tuple(fields)))


def put_out(put: PutStream) -> PutStream:
    """The change with topics, keys and fields of replies."""
    names = tuple(field.name for field in put.stream.fields)
    output = OutputDefinition("scored", "rejected", ReplyKey.INPUT, names[:2])
    return replace(put, stream=replace(put.stream, output=output))


def keeping(put: PutStream, kept_ms: int | None) -> PutStream:
    """The change with another time for which logs are kept."""
    return replace(put, stream=replace(put.stream, log_retention_ms=kept_ms))


def test_entries_of_the_catalogue() -> None:
    held("catalogue_entries.json", {name: msgspec.json.decode(each) for name, each in entries().items()})


def test_entries_are_read_back() -> None:
    bodies = expected("catalogue_entries.json")
    state = CatalogState("place")

    def take(name: str) -> None:
        state.take(0, msgspec.json.encode(bodies[name]))

    take("a stream begins")
    take("a metric begins")
    assert (state.keys, [each.place for each in state.pending]) == ({"payments": KEY}, [1, 3])
    assert [(each.place, each.at_ms, each.who, each.from_) for each in state.log.newest(9)] == [
        (3, None, None, None),
        (1, None, None, None),
    ]
    take("done")
    assert list(state.done.streams["payments"].metrics) == ["n_7d"]
    take("a stream is dropped in a cluster")
    assert [each.place for each in state.made_by(AUTHOR)] == [10]
    assert [(each.place, each.due_ms) for each in state.removals] == [(10, DUE_MS)]
    take("topics are removed")
    assert state.removals == []


def test_where_events_have_fields_is_read_back() -> None:
    state = CatalogState("place")
    body = expected("catalogue_entries.json")["a stream begins that says where events have its fields"]
    state.take(0, msgspec.json.encode(body))
    put = changes()[0]
    assert isinstance(put, PutStream)
    assert state.catalog.streams["payments"].stream == placed(put).stream


def test_computed_fields_are_read_back() -> None:
    state = CatalogState("place")
    state.take(
        0, msgspec.json.encode(expected("catalogue_entries.json")["a stream begins with computed fields"])
    )
    put = changes()[0]
    assert isinstance(put, PutStream)
    stream = state.catalog.streams["payments"].stream
    assert stream == computing(put).stream
    assert stream.computed[0].zones[0].offsets == LISBON.offsets


def test_input_topics_are_read_back() -> None:
    state, bodies = CatalogState("place"), expected("catalogue_entries.json")
    for name in ("a stream begins that says from which topics its events come", "a topic has a number"):
        state.take(0, msgspec.json.encode(bodies[name]))
    put = changes()[0]
    assert isinstance(put, PutStream)
    stream = state.catalog.streams["payments"].stream
    assert stream == fed(put).stream
    assert stream.input.where is not None
    assert stream.input.where.zones[0].offsets == LISBON.offsets
    assert state.topics == {1: {TOPIC.id: TOPIC}}
    assert state.pending
    state.take(0, msgspec.json.encode(bodies["a topic is read by another mapping"]))
    assert state.topics == {1: {TOPIC.id: MAPPED}}


def test_where_replies_go_is_read_back() -> None:
    put = changes()[0]
    assert isinstance(put, PutStream)
    assert change_to_json(put_out(put)) == change_to_json(put)
    state = CatalogState("place")
    body = expected("catalogue_entries.json")["a stream begins that says where its replies go"]
    state.take(0, msgspec.json.encode(body))
    assert state.catalog.streams["payments"].stream == put_out(put).stream
    # An entry that says nothing takes it back.
    state.take(1, begin_entry(replace(put, place=2), Made()))
    assert state.catalog.streams["payments"].stream == put.stream
    assert state.log.newest(1)[0].what.startswith("output topic scored; dead rejected; key input; include ")


def test_who_made_a_change_is_read_back() -> None:
    bodies = expected("catalogue_entries.json")
    state = CatalogState("place")
    for name in ("a stream begins", "a metric begins, by whom"):
        state.take(0, msgspec.json.encode(bodies[name]))
    (newest, _) = state.log.newest(9)
    assert (newest.at_ms, newest.who, newest.from_) == (1_700_000_000_000, "deploy", "192.0.2.7")


def test_keys_of_an_entry_that_are_not_known_are_passed_over() -> None:
    """So that this release reads what a later one of the same version writes."""
    bodies = expected("catalogue_entries.json")
    state = CatalogState("place")
    state.take(0, msgspec.json.encode({**bodies["a stream begins"], "of_a_later_release": [1]}))
    assert list(state.catalog.streams) == ["payments"]


def test_how_long_logs_are_kept_stands_beside_the_change() -> None:
    """Releases that do not know it pass over it, and what they write of the stream leaves it as it is."""
    put = changes()[0]
    assert isinstance(put, PutStream)
    kept, plain = (
        msgspec.json.decode(begin_entry(each, Made())) for each in (keeping(put, 604_800_000), put)
    )
    assert kept == {**plain, "log_retention": "7d"}
    assert change_to_json(keeping(put, 604_800_000)) == change_to_json(put)

    state = CatalogState("place")

    def kept_ms(change: PutStream, *, takes_back: bool = False) -> int | None:
        place, before = state.catalog.last_place + 1, state.catalog.definitions.get("payments")
        state.take(
            0, begin_entry(replace(change, place=place), Made(), before=before if takes_back else None)
        )
        state.take(0, done_entry(state.catalog.last_place))
        found = state.catalog.streams["payments"].stream
        assert found == state.done.streams["payments"].stream
        return found.log_retention_ms

    assert kept_ms(put) is None
    assert kept_ms(keeping(put, 604_800_000)) == 604_800_000
    assert kept_ms(put) == 604_800_000
    assert kept_ms(keeping(put, LOGS_FOREVER)) == LOGS_FOREVER
    assert kept_ms(put, takes_back=True) is None
    assert kept_ms(put) is None
    assert [each.what for each in state.log.newest(9)] == [
        "put again",
        "log_retention forever -> unset",
        "log_retention 7d -> forever",
        "put again",
        "log_retention unset -> 7d",
        f"created with {len(put.stream.fields)} fields",
    ]
