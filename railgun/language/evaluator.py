"""Runs a program over batches: owns its registers and its scratch heap, and binds the batch's columns.

LOWER and UPPER map each code point by itself, by the full mappings of Unicode 14.0. The mappings are in `casemap.txt`,
so that results do not depend on the Unicode version of the Python that runs. `python -m railgun.language.evaluator`
writes that file, in a Python whose `unicodedata.unidata_version` is 14.0.0. A new file changes results.
"""

import functools
import sys
import unicodedata
from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

from railgun.language.kernels import layout
from railgun.language.kernels.evaluate import evaluate as evaluate_program
from railgun.language.program import Program
from reservoir.native.jit import address

UNICODE_VERSION = "14.0.0"
_FILE = "casemap.txt"
# One length byte and up to seven of UTF-8: the longest mapping has six.
_RECORD_BYTES = 8


@dataclass(frozen=True)
class CaseTables:
    """The tables as kernels read them.

    directory: int64[6], for LOWER then UPPER: the address of `indexes`, its length, the address of `records`.
    held: the arrays at those addresses. `indexes` is uint16 by code point, 0 if a code point maps to itself.
    `records` is uint8[, 8] by index: a length and that many bytes of UTF-8.
    """

    directory: npt.NDArray[np.int64]
    held: tuple[npt.NDArray[np.generic], ...]


@functools.cache
def case_tables() -> CaseTables:
    """The tables of this process, read once."""
    text = resources.files("railgun.language").joinpath(_FILE).read_text("utf-8")
    mappings: dict[str, dict[int, str]] = {"lower": {}, "upper": {}}
    for line in text.splitlines():
        if not line.startswith("#"):
            direction, code_point, *mapped = line.split()
            mappings[direction][int(code_point, 16)] = "".join(chr(int(point, 16)) for point in mapped)
    held: list[npt.NDArray[np.generic]] = []
    directory: list[int] = []
    for mapping in mappings.values():
        indexes, records = _tables(mapping)
        held += [indexes, records]
        directory += [address(indexes), len(indexes), address(records)]
    return CaseTables(np.array(directory, np.int64), tuple(held))


def _tables(mapping: dict[int, str]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint8]]:
    indexes = np.zeros(max(mapping) + 1, np.uint16)
    records = np.zeros((len(mapping) + 1, _RECORD_BYTES), np.uint8)
    for index, (code_point, mapped) in enumerate(sorted(mapping.items()), start=1):
        encoded = mapped.encode()
        indexes[code_point] = index
        records[index, 0] = len(encoded)
        records[index, 1 : len(encoded) + 1] = np.frombuffer(encoded, np.uint8)
    return indexes, records


def casemap_text() -> str:
    """The content of the mapping's file, from the Unicode data of this Python. Raises ValueError if it is not 14.0."""
    if unicodedata.unidata_version != UNICODE_VERSION:
        raise ValueError(f"this Python has Unicode {unicodedata.unidata_version}, not {UNICODE_VERSION}")
    lines = [f"# Full case mappings of Unicode {UNICODE_VERSION}, without context: see evaluator.py."]
    for direction, mapped_by in (("lower", str.lower), ("upper", str.upper)):
        for code_point in range(sys.maxunicode + 1):
            character = chr(code_point)
            mapped = mapped_by(character)
            if mapped != character:
                lines.append(f"{direction} {code_point:04X} {' '.join(f'{ord(c):04X}' for c in mapped)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(casemap_text())


_ROWS_AT_FIRST = 256
_SCRATCH_BYTES_AT_FIRST = 4096


class Evaluator:
    """Evaluates one program, batch after batch. Not for several threads at once.

    The caller owns the vectors of input columns: words (uint64) and nulls (uint8, 1 where null; the word is then 0). A
    word is a long, a timestamp or a decimal (its scaled integer) in two's complement; the bits of a double, finite and
    never −0.0; 0 or 1 for a boolean; `offset << 24 | length` into the batch's heap for a string, which is valid UTF-8
    and shorter than 2**24 bytes. Results have the same form. The two upper bits of a string's word say which heap it is
    in: the batch's (0), that of the program's constants (1), or this evaluator's scratch (2). Results are valid until
    the next call of `evaluate`.

    A string that an operation would make longer than STRING_BYTES_MAX is null.
    """

    def __init__(self, program: Program, rows: int = _ROWS_AT_FIRST) -> None:
        """rows: the number of events to allocate room for at first."""
        self.program = program
        self.context = np.zeros(layout.VECTORS + 2 * program.vectors, np.int64)
        self.context_address = address(self.context)
        self._capacity = 0
        self._set(layout.PROGRAM, address(program.rows))
        self._set(layout.PROGRAM_LENGTH, len(program.rows))
        self._set(layout.POOL, address(program.pool))
        self._set(layout.HEAP_CONSTANT, address(program.heap))
        # Kept alive here too: of tables that several threads make at the same time, only the last ones are cached.
        self._case_tables = case_tables()
        self._set(layout.CASE_TABLES, address(self._case_tables.directory))
        self._grow(rows)
        self._grow_scratch(_SCRATCH_BYTES_AT_FIRST)

    def _set(self, place: int, value: int) -> None:
        self.context[place] = value

    def bind(self, column: int, words_address: int, nulls_address: int) -> None:
        """Set the addresses of a column's vectors. The caller must keep the vectors alive."""
        place = layout.VECTORS + 2 * column
        self.context[place] = words_address
        self.context[place + 1] = nulls_address

    def bind_heap(self, heap_address: int) -> None:
        """Set the address of the bytes of the batch's strings. The caller must keep them alive."""
        self.context[layout.HEAP_BATCH] = heap_address

    def evaluate(self, rows: int) -> None:
        """Evaluate every root over the first `rows` events of the bound columns."""
        if rows > self._capacity:
            self._grow(rows)
        self.context[layout.ROWS] = rows
        while evaluate_program(self.context_address) != layout.DONE:
            self._grow_scratch(int(self.context[layout.SCRATCH_WANTED]))

    def root_addresses(self, root: int) -> tuple[int, int]:
        """The addresses of the words and the null bytes of a root, as the last `evaluate` left them."""
        place = layout.VECTORS + 2 * self.program.roots[root]
        return int(self.context[place]), int(self.context[place + 1])

    @property
    def own_vectors(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8]]:
        """(words, nulls) of all vectors that are not columns, in their order, as the last `evaluate` left them."""
        return self._words, self._nulls

    @property
    def heap_addresses(self) -> tuple[int, int, int]:
        """The addresses of the heaps 0, 1 and 2: the batch's, the constants', the scratch."""
        batch, constant, scratch = self.context[layout.HEAP_BATCH : layout.HEAP_BATCH + 3].tolist()
        return batch, constant, scratch

    def string_heap(self, word: int) -> int:
        """The address of the heap that a string's word points into."""
        return int(self.context[layout.HEAP_BATCH + (word >> layout.HEAP_SHIFT)])

    @property
    def own_heaps(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        """The bytes of heaps 1 and 2, uint8. Those of heap 2 are valid until the next `evaluate`."""
        return self.program.heap, self._scratch[: int(self.context[layout.SCRATCH_USED])]

    def _grow(self, rows: int) -> None:
        """Allocate the vectors for so many rows, and fill those of constants, which no evaluation writes."""
        program = self.program
        self._capacity = 1 << (rows - 1).bit_length()
        own = program.vectors - len(program.columns)
        self._words: npt.NDArray[np.uint64] = np.zeros((own, self._capacity), np.uint64)
        self._nulls: npt.NDArray[np.uint8] = np.zeros((own, self._capacity), np.uint8)
        constants = len(program.constant_words)
        self._words[:constants] = program.constant_words[:, np.newaxis]
        self._nulls[:constants] = program.constant_nulls[:, np.newaxis]
        words, nulls = address(self._words), address(self._nulls)
        for vector in range(own):
            place = layout.VECTORS + 2 * (len(program.columns) + vector)
            self.context[place] = words + 8 * vector * self._capacity
            self.context[place + 1] = nulls + vector * self._capacity

    def _grow_scratch(self, size_bytes: int) -> None:
        self._scratch: npt.NDArray[np.uint8] = np.zeros(1 << (size_bytes - 1).bit_length(), np.uint8)
        self._set(layout.HEAP_SCRATCH, address(self._scratch))
        self._set(layout.SCRATCH_CAPACITY, len(self._scratch))
