"""Formats of files by their first bytes: those that are read, and the names of others."""

import codecs
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privcore.errors import DomainError

BLOCK = 1 << 24
"""Bytes of a block of text; a row cannot be longer."""
MOST_ROWS = 10**8
"""Most rows of a file."""
MOST_TEXT = 4e9
"""Most bytes of CSV or JSONL, after decompression."""

_START = 4096
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_MARKS = {  # the longer ones first: that of UTF-16 begins that of UTF-32
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
    b"\xef\xbb\xbf": "utf-8-sig",
}
_EXPORT = "export it as CSV"
_OTHERS = {
    b"ARROW1": ("a Feather or Arrow file", "write it as Parquet"),
    b"FEA1": ("a Feather file", "write it as Parquet"),
    b"\xff\xff\xff\xff": ("an Arrow stream", "write it as Parquet"),
    b"ORC": ("an ORC file", "write it as Parquet"),
    b"Obj\x01": ("an Avro file", "write it as Parquet"),
    b"\x89HDF": ("an HDF5 file", "write the column as Parquet or NPY"),
    b"SQLite format 3": ("an SQLite database", _EXPORT),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "export its sheet as CSV"),
    b"\xfd7zXZ": ("an xz archive", "unpack it"),
    b"7z\xbc\xaf": ("a 7-Zip archive", "unpack it"),
    b"Rar!": ("a RAR archive", "unpack it"),
    b"%PDF": ("a PDF document", _EXPORT),
    b"RDX": ("an R data file", _EXPORT),
    b"RDA": ("an R data file", _EXPORT),
    b"X\n\x00": ("an R data file", _EXPORT),
    b"MATLAB": ("a MATLAB file", _EXPORT),
    b"<stata_dta>": ("a Stata file", _EXPORT),
    b"$FL": ("an SPSS file", _EXPORT),
    b"<!DOCTYPE": ("an HTML page", _EXPORT),
    b"<html": ("an HTML page", _EXPORT),
    b"<?xml": ("an XML document", _EXPORT),
    b"version https://git-lfs": ("a pointer of Git LFS", "download it with git lfs pull"),
    **{
        bytes((0x80, protocol)): ("a Python pickle", "write it as Parquet or NPY") for protocol in range(2, 6)
    },
}


@dataclass(frozen=True, kw_only=True)
class Format:
    """Format of a file.

    Attributes:
        kind: `npy`, `npz`, `parquet`, `json` (one object a line) or `csv`.
        packed: Name of the compression of text, or None.
        encoding: Encoding of text.
    """

    kind: str
    packed: str | None = None
    encoding: str = "utf-8"

    def bytes_of(self, path: Path) -> Any:
        """Return a stream of the decompressed bytes of a file."""
        import pyarrow as pa

        return pa.input_stream(str(path), compression=self.packed)

    def utf8(self, path: Path) -> Any:
        """Return a stream of the text of a file in UTF-8."""
        import pyarrow as pa

        stream = self.bytes_of(path)
        if self.encoding.startswith("utf-8"):
            return stream
        return pa.transcoding_input_stream(stream, self.encoding, "utf-8")


def format_of(path: Path) -> Format:
    """Return the format of a file, by its first bytes: its name does not matter.

    Raises:
        DomainError: The file is empty, too large, or has a format that is not read, which is named.
        OSError, pyarrow.ArrowException: The file cannot be read or decompressed.
    """
    with path.open("rb") as file:
        start = file.read(_START)
    packed = next((name for magic, name in _PACKED.items() if start.startswith(magic)), None)
    if packed == "bz2" and start[4:10] != b"1AY&SY":
        packed = None
    if packed is not None:
        with Format(kind="csv", packed=packed).bytes_of(path) as stream:
            start = stream.read(_START)
    if not start:
        raise DomainError(f"Expected 1 to {MOST_ROWS} rows in {path}, got an empty file.")
    kind = _binary(path, start, packed)
    if kind is not None:
        if packed is not None:
            raise _refused(path, f"a {packed} file with {kind.upper()} data", "decompress it")
        return Format(kind=kind)
    _check_size(path, packed)
    encoding = _encoding(path, start)
    text = start.decode(encoding, "replace").lstrip()
    if text[:1] == "[" and text[1:].lstrip()[:1] in ("{", "["):
        raise DomainError(f"Expected one JSON object on each line of {path}, got a JSON array.")
    if text.startswith("{"):
        return Format(kind="json", packed=packed, encoding=encoding)
    if encoding == "utf-8":
        try:
            codecs.getincrementaldecoder(encoding)().decode(start)  # a character may go on after the start
        except UnicodeDecodeError:
            encoding = "latin-1"
    return Format(kind="csv", packed=packed, encoding=encoding)


def _binary(path: Path, start: bytes, packed: str | None) -> str | None:
    """Return the name of a format of bytes that is read; None for text."""
    if start.startswith(b"\x93NUMPY"):
        return "npy"
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"PK") and start[2:4] in (b"\x03\x04", b"\x05\x06", b"\x07\x08"):
        if packed is None:
            _check_archive(path)
        return "npz"
    if start[257:262] == b"ustar":
        raise _refused(path, "a tar archive", "unpack it")
    for magic, (what, remedy) in _OTHERS.items():
        if start.startswith(magic):
            raise _refused(path, what, remedy)
    return None


def _check_archive(path: Path) -> None:
    """Refuse an archive without arrays of numpy, and name its format."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if any(name.endswith(".npy") for name in names):
                return
            if any(name.startswith("xl/") for name in names):
                raise _refused(path, "an Excel workbook", "export its sheet as CSV")
            if "mimetype" in names:
                with archive.open("mimetype") as member:
                    if member.read(64).startswith(b"application/vnd.oasis"):
                        raise _refused(path, "an OpenDocument file", "export its sheet as CSV")
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError):
        raise DomainError(
            f"Expected a Parquet, CSV, JSONL, NPY or NPZ file, but {path} is a zip archive that is truncated "
            "or damaged; copy it again."
        ) from None
    if any(name.endswith("data.pkl") for name in names):
        raise _refused(path, "a PyTorch file", "write the column as NPY")
    raise _refused(path, "a zip archive", "unpack it")


def _check_size(path: Path, packed: str | None) -> None:
    """Refuse too much text; compressed text is measured, since its size says nothing about its rows."""
    if path.stat().st_size > MOST_TEXT:
        raise DomainError(f"Expected at most {MOST_TEXT / 1e9:g} GB of text, got more in {path}.")
    if packed is None:
        return
    rows = size = 0
    with Format(kind="csv", packed=packed).bytes_of(path) as stream:
        while block := stream.read(BLOCK):
            rows, size = rows + block.count(b"\n"), size + len(block)
            if size > MOST_TEXT:
                raise DomainError(f"Expected at most {MOST_TEXT / 1e9:g} GB of text, got more in {path}.")
            if rows > MOST_ROWS + 1:
                raise DomainError(f"Expected 1 to {MOST_ROWS} rows in {path}, got more.")


def _encoding(path: Path, start: bytes) -> str:
    """Return the encoding of text: by its mark, or by the zeros of UTF-16."""
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return encoding
    zeros = [start[side::2].count(0) for side in (0, 1)]
    if not any(zeros):
        return "utf-8"
    if (
        max(zeros) > len(start) // 4 and min(zeros) < max(zeros) // 4
    ):  # Latin letters with a zero before or after
        return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
    raise _refused(path, "a binary file", _EXPORT)


def no_rows(path: Path, rows: int) -> DomainError:
    """Return the error about a file without rows, or with too many."""
    return DomainError(f"Expected 1 to {MOST_ROWS} rows in {path}, got {rows}.")


def _refused(path: Path, what: str, remedy: str) -> DomainError:
    return DomainError(
        f"Expected a Parquet, CSV, JSONL, NPY or NPZ file, but {path} is {what}; {remedy} first."
    )


def places(
    path: Path, names: Sequence[str], present: Sequence[str], refused: Mapping[str, str], hint: str = ""
) -> list[int]:
    """Return the places of columns among those of a file, whose names may have blanks around them.

    Args:
        path: The file.
        names: Names of the wanted columns.
        present: Names of the columns of the file.
        refused: For the name of a column that must not exist, the sentence that refuses the file.
        hint: Words about the columns of the file, if one is missing.

    Raises:
        DomainError: A column is missing, listed twice, or refused with the sentence for its name.
    """
    stripped = [name.strip() for name in present]
    for name in stripped:
        if name in refused:
            raise DomainError(refused[name])
    found = []
    for name in names:
        alike = [place for place, each in enumerate(stripped) if each == name]
        alike = [place for place in alike if present[place] == name] or alike
        if not alike:
            listed = ", ".join(repr(each[:40]) for each in stripped[:10])
            listed += ", ..." if len(stripped) > 10 else ""
            raise DomainError(f"Expected a column named {name} in {path}; its columns are {listed}{hint}.")
        if len(alike) > 1:
            raise DomainError(f"Expected one column named {name} in {path}, got {len(alike)}.")
        found += alike
    return found
