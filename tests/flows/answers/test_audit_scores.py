"""`privsweep audit` from score files as people have them, and the error rates of their scores."""

import gzip
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.stats import beta, norm
from sklearn.metrics import roc_auc_score

from privcore.distributions.columns import read_columns
from privcore.distributions.tables import read_table
from tests.flows.small_store import Command

CANARIES, GUESSES = 300, 60
_RNG = np.random.default_rng(5)
INCLUDED = _RNG.integers(0, 2, CANARIES)
SCORES = np.round(_RNG.normal(2.0 * INCLUDED), 3)
WORDS = np.where(INCLUDED == 1, "in", "Out")


def jsonl(file: Path) -> None:
    rows = zip(SCORES.tolist(), WORDS.tolist(), strict=True)
    file.write_text("\n".join(json.dumps({"score": score, "included": word}) for score, word in rows))


def csv(file: Path) -> None:
    rows = zip(SCORES.tolist(), WORDS.tolist(), strict=True)
    file.write_text("\n".join(["score,included", *(f"{score},{word}" for score, word in rows)]))


def npy(file: Path) -> None:
    rows = list(zip(SCORES.tolist(), INCLUDED.tolist(), strict=True))
    np.save(file, np.array(rows, dtype=[("score", "f8"), ("included", "?")]))


def npy_of_bytes(file: Path) -> None:
    rows = list(zip(SCORES.tolist(), WORDS.tolist(), strict=True))
    np.save(file, np.array(rows, dtype=[("score", "f8"), ("included", "S3")]))


FORMATS: dict[str, Callable[[Path], None]] = {
    "parquet": lambda file: pyarrow.parquet.write_table(
        pa.table({"score": SCORES, "included": INCLUDED}), file
    ),
    "csv": csv,
    "jsonl": jsonl,
    "npy": npy,
    "npz": lambda file: np.savez_compressed(file, score=SCORES, included=WORDS),
    "bytes.npy": npy_of_bytes,
    "bytes.npz": lambda file: np.savez(file, score=SCORES, included=WORDS.astype("S")),
    "bytes.parquet": lambda file: pyarrow.parquet.write_table(
        pa.table({"score": SCORES, "included": pa.array(WORDS.tolist(), pa.binary())}), file
    ),
    "other_byte_order.npz": lambda file: np.savez(file, score=SCORES.astype(">f8"), included=WORDS),
}


def audit(privsweep: Command, *words: object) -> Any:
    """The JSON output of an audit of these scores."""
    common = ["--delta", "1e-5", "--guesses", str(GUESSES), "--json"]
    assert privsweep("audit", *words, *common) == 0, privsweep.err
    return privsweep.json


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    FORMATS["npz"](tmp_path / "s.npz")
    return tmp_path / "s.npz"


def test_every_format_of_a_file_gives_the_same_audit(tmp_path: Path, privsweep: Command) -> None:
    found = []
    for name, write in FORMATS.items():
        write(tmp_path / f"s.{name}")
        found.append(audit(privsweep, "--scores", tmp_path / f"s.{name}"))
    assert all(each == found[0] for each in found)
    ranked = INCLUDED[np.argsort(SCORES, kind="stable")]
    correct = int(ranked[-GUESSES // 2 :].sum() + (1 - ranked[: GUESSES // 2]).sum())
    assert abs(found[0]["correct"] - correct) <= 1, "ties are broken at random"


@pytest.mark.thorough
def test_losses_in_two_files_give_the_counts_of_scores_in_one(
    tmp_path: Path, npz: Path, privsweep: Command
) -> None:
    for name, bit in (("in", 1), ("out", 0)):
        np.save(tmp_path / f"{name}.npy", -SCORES[bit == INCLUDED])
    files = ["--scores", tmp_path / "in.npy", "--scores-out", tmp_path / "out.npy"]
    losses = audit(privsweep, *files, "--lower-is-member", "--rates", "--threshold", -1.5)
    whole = audit(privsweep, "--scores", npz, "--rates", "--threshold", 1.5)
    assert abs(losses["correct"] - whole["correct"]) <= 1, "ties are broken by other seeds"
    (first,), (second,) = (each["rates"].pop("thresholds") for each in (losses, whole))
    assert losses["rates"] == whole["rates"]
    assert (first.pop("in_if"), first.pop("threshold")) == ("below", -1.5)
    assert (second.pop("in_if"), second.pop("threshold")) == ("above", 1.5)
    assert first == second


def test_the_centre_of_losses_is_in_the_units_of_the_file(tmp_path: Path, privsweep: Command) -> None:
    table = pa.table({"score": SCORES, "loss": 10.0 - SCORES, "included": INCLUDED})
    pyarrow.parquet.write_table(table, file := tmp_path / "s.parquet")
    scores = audit(privsweep, "--scores", file, "--clearest", "--centre", 1.0)
    loss = ["--score-column", "loss", "--lower-is-member"]
    losses = audit(privsweep, "--scores", file, *loss, "--clearest", "--centre", 9.0)
    assert abs(scores["correct"] - losses["correct"]) <= 1, "ties are broken by other seeds"
    assert (
        scores["correct"]
        > audit(privsweep, "--scores", file, *loss, "--clearest", "--centre", 1.0)["correct"]
    )


def test_the_mark_of_utf_8_is_no_part_of_a_file(tmp_path: Path, privsweep: Command) -> None:
    jsonl(plain := tmp_path / "plain.jsonl")
    (marked := tmp_path / "marked.jsonl").write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    assert audit(privsweep, "--scores", marked) == audit(privsweep, "--scores", plain)


@pytest.mark.parametrize("form", ["npz", "parquet"])
def test_a_missing_column_gets_one_sentence(form: str, tmp_path: Path, privsweep: Command) -> None:
    file = tmp_path / f"s.{form}"
    FORMATS[form](file)
    words = ["audit", "--scores", str(file), "--score-column", "loss", "--guesses", "2", "--delta", "1e-5"]
    assert privsweep(*words) == 2
    assert privsweep.err.startswith(
        f"privsweep: Expected a column named loss in {file}; its columns are 'score', 'included'."
    )


def test_several_thresholds_share_the_error(npz: Path, privsweep: Command) -> None:
    found = audit(privsweep, "--scores", npz, "--rates", "--threshold", 1.5, "--threshold", 2.0)["rates"]
    inside, outside = SCORES[INCLUDED == 1], SCORES[INCLUDED == 0]
    error = 1.0 - math.sqrt(1.0 - 0.05 / 2)
    for each in found["thresholds"]:
        hits, wrong = int(np.sum(inside > each["threshold"])), int(np.sum(outside > each["threshold"]))
        assert (each["true_positives"], each["false_positives"]) == (hits, wrong)
        least = beta.ppf(error, hits, inside.size - hits + 1)
        most = beta.ppf(1.0 - error, wrong + 1, outside.size - wrong)
        epsilon = max(math.log((least - 1e-5) / most), math.log((1.0 - most - 1e-5) / (1.0 - least)))
        caught, false = hits / inside.size, wrong / outside.size
        likeliest = max(math.log(caught / false), math.log((1.0 - false) / (1.0 - caught)))
        assert max(0.0, 0.98 * epsilon) < each["epsilon"] < likeliest
        separate, estimated = (norm.ppf(p) - norm.ppf(q) for p, q in ((least, most), (caught, false)))
        deltas = [
            norm.cdf(mu / 2 - each["gaussian"] / mu)
            - math.exp(each["gaussian"]) * norm.cdf(-mu / 2 - each["gaussian"] / mu)
            for mu in (separate, estimated)
        ]
        assert deltas[0] < 1e-5 < deltas[1], "the refuted mu is between that of two bounds and the estimate"
    assert found["refuted_epsilon"] == max(each["epsilon"] for each in found["thresholds"])


def test_a_threshold_from_one_half_is_used_for_the_other(npz: Path, privsweep: Command) -> None:
    found = audit(privsweep, "--scores", npz, "--rates", "--false-positive-rate", 0.2)["rates"]
    (only,) = found["thresholds"]
    assert only["runs_with"] + only["runs_without"] == CANARIES // 2
    assert found["area_under_curve"]["estimate"] == pytest.approx(roc_auc_score(INCLUDED, SCORES), rel=1e-14)
    (rate,) = found["true_positive_rate"]
    assert rate["interval"][0] < norm.sf(norm.isf(0.2) - 2.0) < rate["interval"][1]
    assert found["assumption"] == "the scores of the canaries are independent"


@pytest.mark.parametrize(
    ("words", "neighbours"),
    [
        (
            ["audit", "--delta", "1e-5", "--counts", "1000", "100", "90", "--design", "independent"],
            "add-remove",
        ),
        (["audit", "--delta", "1e-5", "--counts", "1000", "100", "40", "--alternatives", "5"], "replace-one"),
        (["audit", "--delta", "1e-5", "--counts", "1000", "100", "90", "--design", "pairs"], "replace-one"),
        (
            ["audit", "--delta", "1e-5", "--counts", "1000", "100", "90", "--design", "exactly-half"],
            "add-remove",
        ),
        (
            ["ask", "audit-mu", "canaries=1000", "guesses=100", "correct=90", "design=independent"],
            "add-remove",
        ),
        (["ask", "audit-mu", "canaries=1000", "guesses=100", "correct=90", "design=pairs"], "replace-one"),
        (["ask", "audit-mu", "canaries=1000", "guesses=100", "correct=40", "alternatives=5"], "replace-one"),
    ],
)
def test_every_output_names_the_neighbouring_relation(
    words: list[str], neighbours: str, privsweep: Command
) -> None:
    assert privsweep(*words) == 0
    assert f"({neighbours})" in privsweep.out
    assert privsweep.told(*words)["neighbours"] == neighbours


@pytest.mark.thorough
def test_rates_are_printed_as_text(npz: Path, privsweep: Command) -> None:
    assert privsweep("audit", "--scores", npz, "--guesses", "60", "--delta", "1e-5", "--rates") == 0
    out = privsweep.out
    assert "if the scores of the canaries are independent, each with confidence 0.95:" in out
    assert "TPR at FPR 0.01" in out
    assert "AUROC" in out


HEADERS = {
    "empty.npy": b"{'descr': '|S0', 'fortran_order': False, 'shape': (100000000,)}",
    "huge.npy": b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000000000000000,)}",
    "open.npy": b"(" * 9000,
}
"""Headers of arrays of numpy that no file can fill."""


def bomb(file: Path) -> None:
    rows = 500_000
    table = pa.table({"score": np.zeros(rows), "included": np.ones(rows, dtype=bool)})
    with pyarrow.parquet.ParquetWriter(file, table.schema) as writer:
        for _ in range(201):
            writer.write_table(table)


def packed(file: Path) -> None:
    with gzip.open(file, "wb", compresslevel=1) as opened:
        opened.write(b"score,included\n")
        for _ in range(101):
            opened.write(b"1,1\n" * 1_000_000)


def long_texts(file: Path) -> None:
    row = b"1,1," + b"x" * 999_995 + b"\n"
    with gzip.open(file, "wb", compresslevel=1) as opened:
        opened.write(b"score,included,notes\n")
    whole = gzip.compress(row * 100, compresslevel=1)  # 100 MB
    with file.open("ab") as opened:
        for _ in range(41):
            opened.write(whole)


def without_end(file: Path) -> None:
    file.write_text('{"score":1,"included":1}\n')
    os.truncate(file, 4 * 10**12)  # 4 TB of zeros, which need no room


def columns(**given: Any) -> Callable[[Path], None]:
    return lambda file: pyarrow.parquet.write_table(pa.table({**given, "included": [1, 0]}), file)


WRITERS: dict[str, Callable[[Path], object]] = {
    "objects.npz": lambda file: np.savez(file, score=np.array([{}], dtype=object), included=np.array([1])),
    "matrix.npy": lambda file: np.save(file, np.ones((3, 2))),
    "wide.csv": lambda file: file.write_text(",".join(f"c{k}" for k in range(300_000)) + "\n"),
    "wide.jsonl": lambda file: file.write_text(json.dumps({f"c{k}": 1 for k in range(300_000)})),
    "array.json": lambda file: file.write_text('[{"score": 1, "included": 1}]'),
    "word.csv": lambda file: file.write_text("score,included\n1,maybe\n"),
    "nested.jsonl": lambda file: file.write_text('{"score":' + "[" * 200_000),
    "long.csv": lambda file: file.write_text(f"score,included\n1,{' ' * (40 << 20)}1\n"),
    "bomb.parquet": bomb,
    "packed.csv.gz": packed,
    "texts.csv.gz": long_texts,
    "without_end.jsonl": without_end,
    "nothing.npz": Path.touch,
    "nested.parquet": columns(score=[[1.0], [2.0]]),
    "other.parquet": columns(loss=[1.0, 2.0]),
}


def _damaged(name: str, folder: Path) -> list[str]:
    """The command line of an audit of a damaged file."""
    file = folder / name
    if name in WRITERS:
        WRITERS[name](file)
    elif name in HEADERS:
        file.write_bytes(b"\x93NUMPY\x01\x00" + len(HEADERS[name]).to_bytes(2, "little") + HEADERS[name])
    else:
        FORMATS[file.suffix[1:]](file)
        file.write_bytes(file.read_bytes()[: 9 if name == "start.npy" else -30])
    return ["audit", "--scores", str(file), "--guesses", "2", "--delta", "1e-5"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("objects.npz", "objects.npz, got Python objects; write an array of texts."),
        ("matrix.npy", "Expected an NPY file with named fields"),
        ("wide.csv", "Expected at most 10000 columns in"),
        ("wide.jsonl", "its columns are 'c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'c9', ..."),
        ("array.json", "array.json, got a JSON array."),
        ("word.csv", "maybe"),
        ("cut.npz", "cut.npz is a zip archive that is truncated or damaged; copy it again."),
        ("cut.npy", "cut.npy: the file is truncated."),
        ("start.npy", "start.npy: the file is truncated."),
        (
            "nested.jsonl",
            "nested.jsonl: names and texts in double quotation marks, no name twice, not deeply nested.",
        ),
        ("long.csv", "a row is longer than 16 MB."),
        ("bomb.parquet", "Expected 1 to 100000000 rows in"),
        ("packed.csv.gz", "Expected 1 to 100000000 rows in"),
        pytest.param(
            "texts.csv.gz", "Expected at most 4 GB of text, got more in", marks=pytest.mark.thorough
        ),
        ("without_end.jsonl", "Expected at most 4 GB of text, got more in"),
        ("nothing.npz", "Expected 1 to 100000000 rows in"),
        ("nested.parquet", "Expected a column of values, but score of"),
        ("other.parquet", "Expected a column named score in"),
        ("empty.npy", "has shape (100000000,) and values of 0 bytes."),
        ("huge.npy", "has shape (10000000000000000000000000,) and values of 8 bytes."),
        ("open.npy", "open.npy: the file is truncated."),
    ],
)
def test_a_file_that_is_no_table_of_scores_is_refused_in_a_sentence(
    name: str, sentence: str, tmp_path: Path, privsweep: Command
) -> None:
    assert privsweep(*_damaged(name, tmp_path)) == 2
    assert sentence in privsweep.err
    assert len(privsweep.err) < 400


def test_an_unknown_word_is_named_next_to_the_known_ones(tmp_path: Path, privsweep: Command) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("score,included\n1.0,out\n2.0,maybe\n3.0,in\n")
    assert privsweep("audit", "--scores", file, "--guesses", "2", "--delta", "1e-5") == 2
    assert "Expected one of in, member, yes, " in (error := privsweep.err)
    assert error.endswith(f"in the column included of {file}, got 'maybe' in row 2.\n")


def test_colons_and_commas_in_text_are_no_columns(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(json.dumps({"score": 1.5, "note": ":" * 20_000}))
    (tmp_path / "s.csv").write_text("\rscore,included\r" + "1.5,1\r" * 20_000)  # lines as on old machines
    for name in ("s.jsonl", "s.csv"):
        (scores,) = read_columns(tmp_path / name, ["score"], "numbers")
        assert set(scores.tolist()) == {1.5}


def test_columns_that_are_not_asked_for_are_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("notes,score,included\n" + "".join(f"{'n' * 1000},{k},{k % 2}\n" for k in range(20_000)))
    read_columns(file, ["score"], "numbers")  # so that everything is loaded
    before = pa.total_allocated_bytes()
    kept = read_table(file, ["score", "included"], "numbers")
    assert pa.total_allocated_bytes() - before < 1e6
    assert len(kept) == 2


def test_words_are_inclusion_bits_and_no_scores(tmp_path: Path, privsweep: Command) -> None:
    file = tmp_path / "words.csv"
    file.write_text("score,included\n" + "in,in\nout,out\n" * 50)
    asked = ["audit", "--scores", str(file), "--guesses", "2", "--delta", "1e-5"]
    assert privsweep(*asked) == 2
    assert "Expected numbers in the column score of" in privsweep.err
    assert privsweep(*asked, "--score-column", "included") == 2
    assert "Expected two columns, got included for scores and inclusion bits." in privsweep.err


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", "npy", "npz"])
@pytest.mark.parametrize("state", ["included", "left out"])
def test_inclusion_bits_in_one_of_two_files_are_refused(
    form: str, state: str, tmp_path: Path, privsweep: Command
) -> None:
    FORMATS[form](marked := tmp_path / f"s.{form}")
    np.save(plain := tmp_path / "plain.npy", SCORES)
    files = (marked, plain) if state == "included" else (plain, marked)
    words = ["audit", "--scores", str(files[0]), "--scores-out", str(files[1]), "--guesses", "60"]
    assert privsweep(*words, "--delta", "1e-5") == 2
    assert privsweep.err == (
        f"privsweep: Expected no column included in {marked}, since --scores-out means that all of its rows "
        f"are {state}: leave out --scores-out, so that the column decides, or remove the column.\n"
    )


def test_the_column_of_inclusion_bits_of_one_of_two_files_may_have_another_name(
    tmp_path: Path, privsweep: Command
) -> None:
    pyarrow.parquet.write_table(
        pa.table({"score": SCORES, "member": INCLUDED}), file := tmp_path / "s.parquet"
    )
    files = ["--scores", file, "--scores-out", file, "--design", "independent"]
    assert audit(privsweep, *files)["canaries"] == 2 * CANARIES, "the name of the column says nothing"
    words = [*map(str, files), "--included-column", "member", "--guesses", "60", "--delta", "1e-5"]
    assert privsweep("audit", *words) == 2
    assert "Expected no column member in" in privsweep.err
    assert audit(privsweep, *files, "--score-column", "member", "--included-column", "member")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--threshold", "1"], "Expected --threshold and --false-positive-rate with --rates only."),
        (["--rates", "--threshold", "nan"], "Expected a number for --threshold, got nan."),
        (["--rates", "--false-positive-rate", "1"], "Expected --false-positive-rate in (0, 1), got 1."),
    ],
)
def test_options_that_make_no_sense_are_refused(
    words: list[str], sentence: str, npz: Path, privsweep: Command
) -> None:
    assert privsweep("audit", "--scores", npz, "--guesses", "60", "--delta", "1e-5", *words) == 2
    assert sentence in privsweep.err


def test_the_gaussian_family_is_not_quoted_where_it_refutes_less_than_no_model() -> None:
    from flows.answers.audits.audit_words import _modelled

    assert _modelled(0.01, 0.05) == _modelled(None, 0.05) == ""
    assert _modelled(0.5, 0.05) == ", 0.5 if the mechanism behaves like Gaussian noise"
