"""A schema registry that is slow, lies, has too much, refers in circles, or is away: one clear error each."""

import time
from typing import Any

import pytest

from frontend.formats import schema_registry as limits
from frontend.formats.errors import SchemaPendingError, UnknownSchemaError
from frontend.formats.schema_registry import SIZE_LIMIT_BYTES, SchemaRegistry
from frontend.formats.schemas import FetchedSchemas
from frontend.formats.written_schema import AVRO, JSON_SCHEMA, PROTOBUF, WrittenSchema
from railgun.messaging.errors import TransportUnavailableError
from tests.frontend.formats.schema_registry import schema_registry
from tests.frontend.serving import until


def refers(*names: str) -> list[dict[str, Any]]:
    return [{"name": f"n.{name}", "subject": f"of {name}", "version": 2} for name in names]


def subject(name: str) -> str:
    return f"/subjects/of%20{name}/versions/2"


def test_references_come_before_what_names_them() -> None:
    answers: dict[str, Any] = {
        "/schemas/ids/1": {"schema": "main", "references": refers("a", "b")},
        subject("a"): {"schema": "text a", "references": refers("c")},
        subject("b"): {"schema": "text b", "references": refers("c", "a")},
        subject("c"): {"schema": "text c"},
        "/schemas/ids/2": {"schema": "{}", "schemaType": "JSON", "references": refers("none")},
        "/schemas/ids/3": {"schema": "AA==", "schemaType": "PROTOBUF", "references": None},
    }
    with schema_registry(answers) as running:
        schemas = SchemaRegistry(running.url)
        found = schemas.ask(1)
        assert found == WrittenSchema(AVRO, "main", tuple((f"n.{name}", f"text {name}") for name in "cab"))
        assert running.pending == ["/schemas/ids/1", subject("a"), subject("c"), subject("b")]
        assert schemas.ask(2) == WrittenSchema(JSON_SCHEMA, "{}")
        assert schemas.ask(3) == WrittenSchema(PROTOBUF, "AA==")


LARGE = "x" * (10 << 20)
HALF = "x" * (SIZE_LIMIT_BYTES // 2)


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({}, "the schema registry knows no schema 1"),
        ({"/schemas/ids/1": {"schema": LARGE}}, "schema 1: it has more than 4 MiB, with what it refers to"),
        (
            {
                "/schemas/ids/1": {"schema": HALF, "references": refers("a", "b")},
                **{subject(name): {"schema": HALF} for name in "ab"},
            },
            "schema 1: it has more than 4 MiB, with what it refers to",
        ),
        (
            {
                "/schemas/ids/1": {"schema": "", "references": refers("a")},
                subject("a"): {"schema": "", "references": refers("b")},
                subject("b"): {"schema": "", "references": refers("a")},
            },
            "schema 1: its references go in a circle: of a 2, of b 2, of a 2",
        ),
        (
            {"/schemas/ids/1": {"schema": "", "references": refers("a")}},
            "the schema registry knows no schema 1, which refers to of a 2",
        ),
        (
            {
                "/schemas/ids/1": {
                    "schema": "",
                    "references": [*refers("a"), {**refers("b")[0], "name": "n.a"}],
                },
                subject("a"): {"schema": ""},
                subject("b"): {"schema": ""},
            },
            "schema 1: it refers to two others that are called n.a",
        ),
        ({"/schemas/ids/1": {}}, "schema 1: the schema registry's answer has no schema"),
        ({"/schemas/ids/1": {"schema": 5}}, "schema 1: the schema registry's answer has no schema"),
        (
            {"/schemas/ids/1": {"schema": "", "schemaType": ["AVRO"]}},
            "schema 1 is ['AVRO']; Avro, JSON Schema and Protobuf are read",
        ),
        ({"/schemas/ids/1": {"schema": "", "references": {}}}, None),
        ({"/schemas/ids/1": {"schema": "", "references": "x"}}, "schema 1: its references are no list"),
        (
            {"/schemas/ids/1": {"schema": "", "references": [{"name": "a", "subject": "b"}]}},
            "schema 1: a reference has no name, subject and version",
        ),
        *(
            (
                {"/schemas/ids/1": {"schema": "", "references": [{**refers("a")[0], key: text}]}},
                "schema 1: a reference has a name or subject that is longer than 1000 characters, or no Unicode",
            )
            for key in ("name", "subject")
            for text in ("\ud800", "x" * 1_001)
        ),
    ],
)
def test_a_registry_that_lies(answers: dict[str, Any], why: str | None) -> None:
    with schema_registry(answers) as running:
        schemas = SchemaRegistry(running.url)
        if why is None:
            assert schemas.ask(1) == WrittenSchema(AVRO, "")
            return
        with pytest.raises(UnknownSchemaError) as caught:
            schemas.ask(1)
        assert str(caught.value) == why


def test_more_references_than_are_taken() -> None:
    answers: dict[str, Any] = {"/schemas/ids/1": {"schema": "", "references": refers("0")}}
    for at in range(300):
        answers[subject(str(at))] = {"schema": "", "references": refers(str(at + 1))}
    with schema_registry(answers) as running:
        with pytest.raises(UnknownSchemaError, match=r"^schema 1: it refers to more than 200 others$"):
            SchemaRegistry(running.url).ask(1)
        assert len(running.pending) == 201


def trickle(out: Any) -> None:
    for _ in range(3_000):
        out.write(b" ")
        time.sleep(0.02)


def endless(out: Any) -> None:
    while True:
        out.write(b" " * 65_536)


def test_an_answer_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with schema_registry({"/schemas/ids/1": trickle, "/schemas/ids/2": endless}) as running:
        schemas, begun_s = SchemaRegistry(running.url), time.monotonic()
        with monkeypatch.context() as patch:
            patch.setattr(limits, "_TIMEOUT_S", 0.5)
            with pytest.raises(
                TransportUnavailableError, match=r"schema 1: it is not there after 0\.5 s\. Check"
            ):
                schemas.ask(1)
        assert time.monotonic() - begun_s < 20
        with pytest.raises(UnknownSchemaError, match="schema 2: it has more than 4 MiB"):
            schemas.ask(2)


@pytest.mark.parametrize("said", [b"<html>", b"[1]", b"\xff", b"[" * 100_000, b""])
def test_an_answer_that_is_no_json_object_may_be_another_one_later(said: bytes) -> None:
    with (
        schema_registry({"/schemas/ids/1": lambda out: out.write(said)}) as running,
        pytest.raises(TransportUnavailableError, match="schema 1: "),
    ):
        SchemaRegistry(running.url).ask(1)


# --- in a thread of its own ----------------------------------------------------------------------------


def state(schemas: FetchedSchemas, schema_id: int) -> object:
    """The schema; why there is none; or, while it is asked for, a tuple of the last failure."""
    try:
        return schemas.schema(schema_id).text
    except UnknownSchemaError as error:
        return str(error)
    except SchemaPendingError as error:
        return (error.why,)


def is_ended(schemas: FetchedSchemas) -> bool:
    with schemas._lock:
        return schemas._thread is None


def test_nobody_waits_for_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    with schema_registry(
        {"/schemas/ids/1": {"schema": "one"}, "/schemas/ids/3": {"schema": "three"}}
    ) as running:
        schemas = FetchedSchemas(SchemaRegistry(running.url))
        assert state(schemas, 1) == (None,)
        until(lambda: state(schemas, 1) == "one")
        until(lambda: state(schemas, 2) == "the schema registry knows no schema 2")
        for _ in range(20):
            assert state(schemas, 2) == "the schema registry knows no schema 2"
        assert running.pending == ["/schemas/ids/1", "/schemas/ids/2"]
        until(lambda: is_ended(schemas))
        running.is_down = True
        until(lambda: state(schemas, 3) != (None,))
        (why,) = state(schemas, 3)  # type: ignore[misc]
        assert "schema 3: status 503. Check that the schema registry runs" in why
        # What is there is not harmed, and the registry is asked again.
        assert state(schemas, 1) == "one"
        running.is_down = False
        until(lambda: state(schemas, 3) == "three")
        until(lambda: is_ended(schemas))


def test_a_schema_that_cannot_be_had_does_not_hold_up_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(schema_id: int) -> WrittenSchema:
        if schema_id == 1:
            raise TransportUnavailableError("there", "schema 1: away", "Wait")
        return WrittenSchema(AVRO, "two")

    with schema_registry({}) as running:
        schemas = FetchedSchemas(SchemaRegistry(running.url))
        monkeypatch.setattr(schemas._registry, "ask", ask)
        until(lambda: (state(schemas, 1), state(schemas, 2)) == (("there: schema 1: away. Wait",), "two"))
        # Nobody wants it any more.
        monkeypatch.setattr("frontend.formats.schemas._WANTED_S", 0.1)
        until(lambda: is_ended(schemas))


def test_a_defect_is_told_of_and_keeps_no_other_schema_from_being_had(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def ask(schema_id: int) -> WrittenSchema:
        if schema_id == 1:
            raise RuntimeError("planted")
        return WrittenSchema(AVRO, "two")

    with schema_registry({}) as running:
        schemas = FetchedSchemas(SchemaRegistry(running.url))
        monkeypatch.setattr(schemas._registry, "ask", ask)
        until(lambda: state(schemas, 1) == "schema 1: a defect: RuntimeError")
        until(lambda: state(schemas, 2) == "two")
    assert "a defect keeps schema 1 from being had" in caplog.messages


def test_a_registry_that_is_away_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked now and then, and what is there is had meanwhile. Then the schema is there."""
    now_s, asked, seen = [0.0], list[int](), set[object]()

    def ask(schema_id: int) -> WrittenSchema:
        if schema_id == 1 and now_s[0] < 3_600:
            asked.append(schema_id)
            raise TransportUnavailableError("there", "schema 1: away", "Wait")
        return WrittenSchema(AVRO, f"schema {schema_id}")

    def sleep(pause_s: float) -> None:
        until_s = now_s[0] + pause_s
        while now_s[0] < until_s:
            # As the thread that reads does.
            seen.add(state(schemas, 1))
            assert state(schemas, 2) == "schema 2"
            now_s[0] += 0.5

    with schema_registry({}) as running:
        schemas = FetchedSchemas(SchemaRegistry(running.url))
        monkeypatch.setattr(schemas._registry, "ask", ask)
        until(lambda: state(schemas, 2) == "schema 2")
        until(lambda: is_ended(schemas))
        monkeypatch.setattr("frontend.formats.schemas.monotonic", lambda: now_s[0])
        monkeypatch.setattr("frontend.formats.schemas.sleep", sleep)
        until(lambda: state(schemas, 1) == "schema 1")
    assert 350 < len(asked) < 370
    assert seen == {("there: schema 1: away. Wait",)}


def test_how_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontend.formats.schemas._KNOWN_MAX", 2)
    asked: list[int] = []

    def ask(schema_id: int) -> WrittenSchema:
        asked.append(schema_id)
        if schema_id > 10:
            raise UnknownSchemaError(f"no {schema_id}")
        return WrittenSchema(AVRO, f"schema {schema_id}")

    with schema_registry({}) as running:
        schemas = FetchedSchemas(SchemaRegistry(running.url))
        monkeypatch.setattr(schemas._registry, "ask", ask)
        for schema_id in (1, 2, 3, 1, 11, 12, 13):
            said = f"schema {schema_id}" if schema_id < 10 else f"no {schema_id}"
            until(lambda schema_id=schema_id, said=said: state(schemas, schema_id) == said)  # type: ignore[misc]
        assert asked == [1, 2, 3, 1, 11, 12, 13]
        assert (len(schemas._known), len(schemas._unknown)) == (2, 1)
