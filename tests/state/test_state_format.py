"""The bytes of FORMAT.md, as they are: stored by this version, readable by every later one."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.state import keys
from railgun.state.layouts import Layout, Run, pack_layout
from railgun.state.rocks import StoreLimits
from railgun.state.rows.access import touch_row
from railgun.state.rows.context import ROW_HEAD_BYTES
from railgun.state.rows.images import VERSION_BYTES, _write_body, image_bytes_max, read_body
from railgun.state.rows.table import EntityTable
from railgun.state.store import Store
from railgun.state.values import PACKED_FORMAT, pack_commit
from reservoir.native.jit import address, array_at
from tests.state.state_run import SALT

ROW_KEY = "72010211121314151617182122232425262728"
# Epoch 1, a body of format 1 or 2; layout 5; cells 0, 3 and 9 of 10.
ROW_VALUE = "0100000001050000000902010000000000000000000000000000ff0200000000000000"
ROW_PACKED = "0100000002050000000902010171ff0102"
LAYOUT_KEY = "6c010200000005"
LAYOUT_VALUE = "01000000010a00000000000000"
COMMIT = "01000100000004000000000000006d657461"
UNDO_KEY = "7500000001"
WRITTEN_KEY = "7700000001"
UNDO_ENTRY = "1300ffffffff" + ROW_KEY


@pytest.fixture(params=[ROW_VALUE, ROW_PACKED])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder written as of old, by hand."""
    store = Store(tmp_path / "old", StoreLimits(1 << 20, 1 << 20))
    for key, value in ((ROW_KEY, request.param), (LAYOUT_KEY, LAYOUT_VALUE), ("6d", COMMIT)):
        store._database[bytes.fromhex(key)] = bytes.fromhex(value)
    store.close()
    return store.folder


def test_what_is_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "new", StoreLimits(1 << 20, 1 << 20))
    store.recover()
    table = EntityTable(1 << 16, store, salt=SALT)
    table.set_layout(0x0102, 5, 10)
    wanted = np.array([(0x0102, 0x1112131415161718, 0x2122232425262728)], np.uint64)
    table.load(wanted, 1)
    (row,) = table.find(wanted).tolist()
    touch_row(table.context, row)
    array_at(row + ROW_HEAD_BYTES, 10, np.uint64)[[0, 3, 9]] = 1, 0xFF << 56, 2
    table.set_epoch(2)
    while not table.exhausted():
        table.pending(1, 1 << 20)
    values = dict(store.scan_values(b"a", b"z", 99))
    assert values[bytes.fromhex(ROW_KEY)].hex() == ROW_PACKED
    assert values[bytes.fromhex(LAYOUT_KEY)].hex() == LAYOUT_VALUE
    undo = [value.hex() for key, value in values.items() if key.hex().startswith(UNDO_KEY)]
    assert UNDO_ENTRY in undo
    written = [value.hex() for key, value in values.items() if key.hex().startswith(WRITTEN_KEY)]
    assert ROW_KEY[-8:] in written
    store.commit(1, b"meta")
    assert store.get_values([keys.META])[0] == bytes.fromhex(COMMIT) == pack_commit(1, b"meta")
    store.close()


def test_what_is_read(folder: Path) -> None:
    store = Store(folder, StoreLimits(1 << 20, 1 << 20))
    assert store.recover() == (1, b"meta")
    table = EntityTable(1 << 16, store, salt=SALT)
    assert table.layouts() == {0x0102: Layout(5, 10, ())}
    ((hashes, cells),) = [block for block in table.reader.rows(0x0102) if len(block[0])]
    assert hashes.tolist() == [[0x1112131415161718, 0x2122232425262728]]
    assert cells.tolist() == [[1, 0, 0, 0xFF << 56, 0, 0, 0, 0, 0, 2]]
    store.close()


def test_a_layout_with_runs() -> None:
    layout = Layout(6, 3, (Run(2, 0, 1), Run(7, 1, 2)))
    expected = "0300000002000000020000000000000001000000070000000100000002000000"
    assert pack_layout(layout).hex() == expected


@given(
    st.lists(st.one_of(st.just(0), st.integers(0, 2**64 - 1), st.integers(0, 255)), min_size=1, max_size=40)
)
def test_packed_cells_come_back(words: list[int]) -> None:
    cells, found = np.array(words, np.uint64), np.ones(len(words), np.uint64)
    body = np.zeros(image_bytes_max(len(words)) + 8, np.uint8)
    start = address(body)
    size = _write_body(start, address(cells), len(words), 5) - start
    assert size <= VERSION_BYTES + -(-len(words) // 8) + 9 * np.count_nonzero(cells)
    form = np.uint8(PACKED_FORMAT)
    assert read_body(start, start + size, form, address(found), len(words))
    assert found.tolist() == words
    for wrong in (size - 1, size + 1):
        assert not read_body(start, start + wrong, form, address(found), len(words))


def test_a_shape_that_no_cell_has_is_refused() -> None:
    body = np.zeros(64, np.uint8)
    start, found = address(body), np.zeros(1, np.uint64)
    for shape in (0x00, 0x09, 0x18, 0x72, 0x81):
        body[VERSION_BYTES : VERSION_BYTES + 2] = 1, shape
        end = start + VERSION_BYTES + 2 + (shape & 15)
        assert not read_body(start, end, np.uint8(PACKED_FORMAT), address(found), 1)
