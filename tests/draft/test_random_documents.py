"""Whatever documents a file has: `apply` reads the draft of them, whose fields take them; or there is one sentence."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from railgun.catalog.model import StreamDefinition
from railgun.draft.draft import draft
from railgun.draft.errors import DraftError
from railgun.draft.sample import Sample
from railgun.files.reading import EventFiles
from railgun.files.sampling import sample_file
from railgun.ingest.file_events import EventChecks
from tests.draft.drafts import NOW_MS, ndjson, read, stream_of, uncommented

_NAMES = st.one_of(
    st.sampled_from(
        ["id", "ts", "card", "amount", "count", "created_at", "select", "after", "op", "payload"]
    ),
    st.sampled_from(
        ["a.b", "a'b", 'a"b', "a\nb", "", " ", "\u2028", "\x7f", "#", "[0]", "@key", "é", "\\", "😀"]
    ),
    st.text(max_size=4),
)
_TIMES = st.integers(1_600_000_000, 1_700_000_000)
_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["2024-01-01T00:00:00Z", "12.50", "007", "c1", "c2"]),
    _TIMES,
    _TIMES.map(lambda each: 1000 * each),
)
_DOCUMENTS = st.dictionaries(
    _NAMES,
    st.recursive(
        _VALUES, lambda each: st.one_of(st.dictionaries(_NAMES, each, max_size=4), st.lists(each, max_size=3))
    ),
    max_size=6,
)


def _utf8(document: Any) -> bool:
    try:
        str(document).encode()
    except UnicodeEncodeError:
        return False
    return True


@given(st.lists(_DOCUMENTS.filter(_utf8), min_size=1, max_size=8), st.integers(1, 4))
def test_a_draft_takes_its_sample(
    tmp_path_factory: pytest.TempPathFactory, documents: list[dict[str, Any]], repeats: int
) -> None:
    path = ndjson(tmp_path_factory.mktemp("draft") / "events.ndjson", documents * repeats)
    sample = Sample("events.ndjson", sample_file(path).documents)
    assert len(sample.documents) == len(documents) * repeats
    try:
        made = draft(sample, "events", NOW_MS)
    except DraftError:
        return
    note(made.text)
    stream = stream_of(made.text)
    assert len(stream.fields) == made.fields
    read(uncommented(made.text))
    assert _refused(stream, path) <= made.refused


def _refused(stream: StreamDefinition, path: Path) -> int:
    """How many of a file's events a stream refuses."""
    schema = stream.incoming(1)
    checks = EventChecks(stream, schema, NOW_MS)
    with EventFiles([path], schema) as files:
        return sum(int(block.bad.sum()) for block in checks.blocks(files))


@given(name=_NAMES.filter(_utf8), value=st.sampled_from(["x", True, 1.5]))
def test_whatever_its_name_is_a_value_is_found(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: Any
) -> None:
    path = ndjson(tmp_path_factory.mktemp("draft") / "events.ndjson", [{"a": {name: value}}])
    stream = stream_of(draft(Sample("e", sample_file(path).documents), "events", NOW_MS).text)
    (field,) = stream.fields
    assert field.path is not None
    assert field.path.steps == ("a", name)
    with EventFiles([path], stream.incoming(1)) as files:
        (block,) = files.blocks()
    assert block.batch.column(0).to_pylist() == [value]
