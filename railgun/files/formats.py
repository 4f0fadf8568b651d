"""Tells the format of a file by its suffix, and checks it against the first bytes."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from railgun.files.errors import EncodingError, SuffixError, UnreadableFileError
from railgun.language.errors import nearest


class Format(StrEnum):
    """A kind of file."""

    PARQUET = "parquet"
    CSV = "csv"
    NDJSON = "ndjson"
    AVRO = "avro"
    ARROW = "arrow"


READABLE = {
    ".parquet": Format.PARQUET,
    ".csv": Format.CSV,
    ".ndjson": Format.NDJSON,
    ".jsonl": Format.NDJSON,
    ".avro": Format.AVRO,
    ".arrow": Format.ARROW,
    ".feather": Format.ARROW,
}
WRITABLE = {suffix: format_ for suffix, format_ in READABLE.items() if format_ is not Format.AVRO}

ARROW_FILE_MAGIC = b"ARROW1"
_ARROW_STREAM_MAGIC = b"\xff\xff\xff\xff"
_MAGIC = {
    b"PAR1": "Parquet",
    ARROW_FILE_MAGIC: "an Arrow file",
    b"FEA1": "a Feather file of version 1",
    b"Obj\x01": "Avro",
    b"\x1f\x8b": "compressed with gzip",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard",
    b"BZh": "compressed with bzip2",
    b"PK\x03\x04": "a zip archive",
}
_OWN_MAGIC = {
    Format.PARQUET: (b"PAR1",),
    Format.AVRO: (b"Obj\x01",),
    Format.ARROW: (ARROW_FILE_MAGIC, _ARROW_STREAM_MAGIC),
}
_WIDE_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x00\x00\xfe\xff": "UTF-32"}
HEAD_BYTES = 8


def readable_format(path: Path) -> Format:
    """Return the format of a file of events by its name. Raises SuffixError."""
    return _by_suffix(path, READABLE, "events are read from")


def writable_format(path: Path) -> Format:
    """Return the format of a file of results by its name. Raises SuffixError."""
    return _by_suffix(path, WRITABLE, "results are written to")


def _by_suffix(path: Path, known: Mapping[str, Format], what: str) -> Format:
    suffix = path.suffix.lower()
    if suffix in known:
        return known[suffix]
    if path.is_dir():
        raise SuffixError(
            str(path), f"it is a folder; name files in it, as in {path.name}/*{next(iter(known))}"
        )
    near = nearest(suffix, known) if suffix else None
    hint = f"; did you mean {near}?" if near else ""
    raise SuffixError(
        str(path), f"{what} files ending in {', '.join(known)}, not {suffix or 'without an ending'}{hint}"
    )


def check_content(path: Path, format_: Format, head: bytes) -> None:
    """Compare a file's first HEAD_BYTES bytes with its format.

    Raises SuffixError, EncodingError, UnreadableFileError (empty), each with the remedy.
    """
    file = str(path)
    if not head:
        if format_ is Format.NDJSON:
            return
        raise UnreadableFileError(file, "the file is empty; was it written to the end?")
    own = _OWN_MAGIC.get(format_, ())
    if head.startswith(own):
        return
    for magic, content in _MAGIC.items():
        if head.startswith(magic):
            raise SuffixError(file, f"the file is {content}, not {format_}; {_remedy(content)}")
    if own:
        first = head[:4].hex()
        raise SuffixError(file, f"the file is no {format_}: it begins with {first}; give it its own suffix")
    for mark, content in _WIDE_MARKS.items():
        if head.startswith(mark):
            raise EncodingError(
                file, f"the file is {content}, not UTF-8; convert it with iconv -f {content} -t UTF-8"
            )
    if b"\0" in head:
        raise EncodingError(file, f"the file is no text, or not UTF-8; {format_} files are UTF-8 text")


def _remedy(content: str) -> str:
    if content.startswith(("compressed", "a zip")):
        return "unpack it first"
    return "give it the suffix of what it is"
