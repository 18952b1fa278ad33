"""Files of the kinds that people have: categories, labels, probabilities, and scores of canaries.

`python -m tests.data.people FOLDER` writes all of them into a folder; tests write them into their own.
"""

import bz2
import gzip
import json
import lzma
import pickle
import random
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

_draw = random.Random(7)
_INCLUDED = [int(_draw.random() < 0.5) for _ in range(200)]
SCORES = [(round(_draw.gauss(1.5 * bit, 1.0), 4), bit) for bit in _INCLUDED]
"""Scores of 200 canaries, 1.5 higher on average for the included ones, and inclusion bits."""

POSTCODES = [*(str(k) for k in range(1, 21)), *(f"0{k}" for k in range(1, 21))]
IDS = [str(10**19 + k) for k in range(40)]


def write(folder: Path) -> None:
    """Write all files."""
    _write_categories(folder)
    _write_labels(folder)
    _write_scores(folder)
    _write_others(folder)


def _text(file: Path, lines: Sequence[str], encoding: str = "utf-8") -> None:
    file.write_bytes(("\n".join(lines) + "\n").encode(encoding))


def _objects(file: Path, name: str, values: Sequence[str]) -> None:
    """Write one JSON object for each value, which is JSON already."""
    _text(file, [f'{{"{name}": {value}}}' for value in values])


def _write_categories(folder: Path) -> None:
    codes = ["250.0", "250.00", "1.1", "1.10", "7", "07"]
    _text(folder / "postcodes.csv", ["postcode", *POSTCODES])
    _text(folder / "diagnoses.csv", ["code", *codes])
    _text(folder / "ids.csv", ["id", *IDS])
    _text(folder / "phones.csv", ["phone", "+491701", "0491701", "491701", "+491702", "0491702"])
    _text(folder / "days.csv", ["day", "2024-01-01", "2024-01-01 00:00:00", "2024-01-02", "2024-01-02T00:00"])
    _text(folder / "cases.csv", ["word", "yes", "Yes", " yes", "true", "True", "1"])
    _text(folder / "notes.csv", ["note", '"two', 'lines"', '"a ""quoted"" word"', '"a, comma"', "plain"])
    _text(folder / "latin.csv", ["Größe", "Köln", "Kiel", "Jena"], "latin-1")
    _text(folder / "late.csv", ["city", *["Kiel"] * 5000, *["Köln"] * 5000, *["Koln"] * 5000], "latin-1")
    _objects(folder / "postcodes.jsonl", "postcode", [json.dumps(code) for code in POSTCODES])
    _objects(folder / "ids.jsonl", "id", IDS)
    days = ["2024-01-01", "2024-01-01 00:00:00", "2024-01-02", "2024-01-02T00:00"]
    _objects(folder / "days.jsonl", "day", [json.dumps(day) for day in days])
    _objects(folder / "mixed.jsonl", "code", ["1", '"1"', "1.0", "1.00", "true", '"true"'])
    pa.parquet.write_table(pa.table({"code": codes}), folder / "diagnoses.parquet")
    pa.parquet.write_table(
        pa.table({"id": np.array([int(one) for one in IDS], np.uint64)}), folder / "ids.parquet"
    )
    words = ["", "NA", "null", "N/A", "nan", "NULL", '""', '"NA"', "#N/A", "<NA>", "None", "\\N", "  "]
    for number, word in enumerate(words):
        _text(folder / f"missing-{number}.csv", ["city,n", "Bonn,1", f"{word},2", "Mainz,3"])
    _text(folder / "missing-line.csv", ["city", "Bonn", "", "Mainz"])
    _objects(folder / "missing-null.jsonl", "city", ['"Bonn"', "null", '"Mainz"'])
    _text(folder / "missing-name.jsonl", ['{"city": "Bonn"}', '{"n": 1}', '{"city": "Mainz"}'])
    pa.parquet.write_table(pa.table({"city": ["Bonn", None, "Mainz"]}), folder / "missing.parquet")


def _write_labels(folder: Path) -> None:
    scores = ["0.05", "0.4", "0.1", "0.0", "0.6", "0.2", "0.05", "0.1"]
    clicks = [0, 1, 0, 0, 1, 0, 0, 0]
    rows = zip(clicks, scores, strict=True)
    _text(folder / "clicks.csv", ["click,score", *(f"{click},{score}" for click, score in rows)])
    _text(folder / "converted.csv", ["converted", "true", *["false"] * 9])
    _text(folder / "commas.csv", ["click;score", *(f"0;{score.replace('.', ',')}" for score in scores)])
    _text(folder / "bought.csv", ["bought,n", *(f"{'Yes' if click else 'No'},1" for click in clicks)])
    _objects(folder / "converted.jsonl", "converted", ["true", *["false"] * 9])
    pa.parquet.write_table(pa.table({"click": [bool(click) for click in clicks]}), folder / "clicks.parquet")
    np.save(folder / "clicks.npy", np.array(clicks, dtype=np.int8))


def _write_scores(folder: Path) -> None:
    header = "score,included"
    lines = [f"{score:.4f},{bit}" for score, bit in SCORES]
    plain = [header, *lines]
    semicolons = [line.replace(",", ";") for line in plain]
    large = [2**60 + sorted(SCORES).index(row) for row in SCORES]  # doubles are 256 apart there
    _text(folder / "scores.csv", plain)
    _text(folder / "scores-semicolon.csv", semicolons)
    _text(folder / "scores-decimal-comma.csv", [line.replace(".", ",") for line in semicolons])
    _text(
        folder / "scores-quoted-comma.csv",
        [header, *(f'"{line[:-2].replace(".", ",")}",{line[-1]}' for line in lines)],
    )
    _text(folder / "scores-tab.tsv", [line.replace(",", "\t") for line in plain])
    _text(folder / "scores-bar.csv", [line.replace(",", "|") for line in plain])
    _text(folder / "scores-blank.csv", [line.replace(",", " , ") for line in plain])
    _text(folder / "scores-quoted-header.csv", ['"score", "included"', *lines])
    _text(folder / "scores-sep-line.csv", ["sep=,", *plain])
    _text(folder / "scores-sep-semicolon.csv", ["sep=;", *semicolons])
    _text(folder / "scores-utf16.csv", plain, "utf-16")
    _text(folder / "scores-utf16-without-mark.csv", plain, "utf-16-be")
    _text(folder / "scores-mark.csv", plain, "utf-8-sig")
    (folder / "scores-windows.csv").write_bytes("\r\n".join(plain).encode())
    pairs = {"yes-no": ("yes", "no"), "t-f": ("t", "F"), "truth": ("True", "False"), "in-out": ("in", "out")}
    pairs |= {
        "member": ("Member", "non-member"),
        "sign": ("+1", "-1"),
        "one": ("1", "-1"),
        "real": ("1.0", "0.0"),
    }
    for name, (inside, outside) in pairs.items():
        words = [f"{line[:-1]}{inside if line.endswith('1') else outside}" for line in lines]
        _text(folder / f"scores-{name}.csv", [header, *words])
    records = [json.dumps({"score": score, "included": "yes" if bit else "no"}) for score, bit in SCORES]
    _text(folder / "scores.jsonl", records)
    bits = [bit for _, bit in SCORES]
    _text(folder / "scores-large.csv", [header, *(f"{x},{bit}" for x, bit in zip(large, bits, strict=True))])
    _text(
        folder / "scores-large.jsonl",
        [json.dumps({"score": x, "included": bit}) for x, bit in zip(large, bits, strict=True)],
    )
    table = pa.table({"score": large, "included": [2 * bit - 1 for bit in bits]})
    pa.parquet.write_table(table, folder / "scores-large.parquet")
    top = sorted(score for score, _ in SCORES)[-20]
    infinite = [f"{'inf' if score > top else score},{bit}" for score, bit in SCORES]
    _text(folder / "scores-infinite.csv", [header, *infinite])
    _text(folder / "scores-reversed.csv", [header, *(f"{-score},{bit}" for score, bit in SCORES)])
    content = ("\n".join(plain) + "\n").encode()
    (folder / "scores-gzip-named.csv").write_bytes(gzip.compress(content, mtime=0))
    (folder / "scores-bz2-named.csv").write_bytes(bz2.compress(content))
    (folder / "scores-gzip.jsonl.gz").write_bytes(gzip.compress("\n".join(records).encode(), mtime=0))


def _write_others(folder: Path) -> None:
    """Write formats that are not read, and damaged files."""
    table = pa.table({"score": [1.0, 0.5], "included": [1, 0]})
    content = b"score,included\n1.0,1\n0.5,0\n"
    for name, member in {
        "book.xlsx": "xl/workbook.xml",
        "zipped.csv": "scores.csv",
        "net.pt": "net/data.pkl",
    }.items():
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr(member, content)
    with zipfile.ZipFile(folder / "sheet.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
    (folder / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    (folder / "list.pkl").write_bytes(pickle.dumps([1.0, 0.5]))
    (folder / "scores.csv.xz").write_bytes(lzma.compress(content))
    (folder / "data.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(600))
    (folder / "noise.csv").write_bytes(bytes(range(256)) * 20)
    (folder / "cut.csv.gz").write_bytes(gzip.compress(content * 1000, mtime=0)[:-40])
    (folder / "page.csv").write_text("<!DOCTYPE html><html></html>\n")
    pa.feather.write_feather(table, folder / "table.feather")
    pa.feather.write_feather(table, folder / "named.csv")
    (folder / "cut.parquet").write_bytes(b"PAR1" + bytes(range(200)))
    _text(folder / "long-row.csv", ["score,included", "1.0,1", "2.0,0,1", "0.5,0"])
    _text(folder / "comma.csv", ["score,included", "1,5,1", "0,5,0"])
    _text(folder / "open.csv", ["score,included,note", "1.0,1,a", '2.0,0,"b', "0.5,0,c", "0.1,1,d"])
    _text(folder / "thousands.csv", ["score;included", "1,234;1", "5,678;0"])
    _text(folder / "word.csv", ["score,included", "1.0,1", "high,0"])
    _text(folder / "escape.csv", ["score,included", "1.0,1", "\x1b[31m,0"])
    _text(folder / "bits.csv", ["score,included", "1.0,1", "0.5,2"])
    _text(folder / "signs.csv", ["score,included", "1.0,-1", "0.5,0"])
    _text(folder / "array.json", ['[{"score": 1.0, "included": 1}]'])
    _text(
        folder / "twice.jsonl", ['{"score": 1.0, "included": 1}', '{"score": 1, "score": 2, "included": 0}']
    )
    _text(folder / "nested.jsonl", ['{"score": 1.0, "included": 1}', '{"score": [2], "included": 0}'])
    _text(folder / "blank.csv", ["score,included", "1.0,1", "0.7,", "0.5,0"])
    _text(folder / "no-header.csv", ["1.0,1", "0.5,0"])
    _text(folder / "other\x1b.csv", ["\x1b[31mred\x07,included", "1.0,1"])
    _text(folder / "header.csv", ["score,included"])


if __name__ == "__main__":
    write(Path(sys.argv[1]))
