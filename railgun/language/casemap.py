"""The case mapping of LOWER and UPPER: each code point by itself, as Unicode 14.0 maps it in full.

The mapping is `casemap.txt`, so that results do not change with the Unicode version of a Python.  It was
made, by a Python whose `unicodedata.unidata_version` is 14.0.0, with `python -m railgun.language.casemap`,
and is to be made anew only together with a change of what results mean.
"""

import functools
import sys
import unicodedata
from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

from reservoir.native.jit import address

UNICODE_VERSION = "14.0.0"
_FILE = "casemap.txt"
# One length byte and up to seven of UTF-8: the longest mapping has six.
_RECORD_BYTES = 8


@dataclass(frozen=True)
class CaseTables:
    """The tables as kernels read them.

    directory: int64[6], for LOWER then UPPER: the address of `indexes`, its length, the address of `records`.
    held: the arrays behind those addresses: `indexes` uint16, by code point, 0 where it maps to itself;
    `records` uint8[, 8], by index, a length and that many bytes of UTF-8.
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
    """The content of the mapping's file, from the Unicode data of this Python, which has to be 14.0."""
    if unicodedata.unidata_version != UNICODE_VERSION:
        raise ValueError(f"this Python has Unicode {unicodedata.unidata_version}, not {UNICODE_VERSION}")
    lines = [f"# Full case mappings of Unicode {UNICODE_VERSION}, without context: see casemap.py."]
    for direction, mapped_by in (("lower", str.lower), ("upper", str.upper)):
        for code_point in range(sys.maxunicode + 1):
            character = chr(code_point)
            mapped = mapped_by(character)
            if mapped != character:
                lines.append(f"{direction} {code_point:04X} {' '.join(f'{ord(c):04X}' for c in mapped)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(casemap_text())
