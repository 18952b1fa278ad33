"""Files as people have them: read as they stand, or refused in one sentence that names row and column."""

from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

from tests.data import people
from tests.flows.small_store import Command

pytestmark = pytest.mark.sampled(20)

AUDIT = ("--guesses", "100", "--delta", "1e-5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files."""
    folder = tmp_path_factory.mktemp("people")
    people.write(folder)
    return folder


def printed(privsweep: Command, *words: object) -> Any:
    assert privsweep(*words, "--json") == 0, privsweep.err
    return privsweep.json


def refusal(privsweep: Command, *words: object) -> str:
    """The sentence with which a command refuses a file; it is one printable line."""
    assert privsweep(*words) == 2
    assert privsweep.out == ""
    assert privsweep.err.startswith("privsweep: ")
    assert privsweep.err.endswith(".\n")
    assert privsweep.err.removesuffix("\n").isprintable()
    for word in (
        "codec",
        "CSV parse",
        "JSON parse",
        "ArrowInvalid",
        "Invalid",
        "pyarrow",
        "numpy",
        "[Content_Types]",
    ):
        assert word not in privsweep.err
    return privsweep.err


# ------------------------------------------------------------------------------------------------ categories

CATEGORIES = [
    ("postcodes.csv", "postcode", 40),
    ("postcodes.jsonl", "postcode", 40),
    ("diagnoses.csv", "code", 6),
    ("diagnoses.parquet", "code", 6),
    ("ids.csv", "id", 40),
    ("ids.jsonl", "id", 40),
    ("ids.parquet", "id", 40),
    ("phones.csv", "phone", 5),
    ("days.csv", "day", 4),
    ("days.jsonl", "day", 4),
    ("cases.csv", "word", 6),
    ("notes.csv", "note", 4),
    ("latin.csv", "Größe", 3),
    ("late.csv", "city", 3),
    ("mixed.jsonl", "code", 6),
]


def advantage(categories: int, records: int) -> float:
    """Largest advantage for equally frequent categories: half the mean distance of frequencies."""
    counts = range(records + 1)
    distances = (
        binom.pmf(k, records, 1.0 / categories) * abs(k / records - 1.0 / categories) for k in counts
    )
    return 0.5 * categories * float(sum(distances))


def test_the_direct_sum_agrees_with_published_values() -> None:
    assert [round(advantage(n, 100), 6) for n in (40, 6)] == [0.253608, 0.089461]


@pytest.mark.parametrize(("file", "column", "different"), CATEGORIES)
def test_categories_are_texts_as_they_stand_in_the_file(
    file: str, column: str, different: int, folder: Path, privsweep: Command
) -> None:
    law = f"column({folder / file},{column})"
    shown = printed(privsweep, "membership", "--law", law, "--records", 100)
    truth = advantage(different, 100)
    assert truth <= shown["advantage"]["upper"] < truth * (1.0 + 1e-6)


@pytest.mark.parametrize("number", range(13))
def test_a_word_for_a_missing_value_is_refused_in_csv(number: int, folder: Path, privsweep: Command) -> None:
    file = folder / f"missing-{number}.csv"
    said = refusal(privsweep, "membership", "--law", f"column({file},city)", "--records", 9)
    assert f"in each row of the column city of {file}; row 2 has no value" in said


@pytest.mark.parametrize(
    "file", ["missing-null.jsonl", "missing-name.jsonl", "missing.parquet", "missing-line.csv"]
)
def test_a_missing_value_is_refused_in_every_format(file: str, folder: Path, privsweep: Command) -> None:
    for kind, words in {"law": ["--law"], "sample": ["--sample"]}.items():
        said = refusal(privsweep, "membership", *words, f"column({folder / file},city)", "--records", 9)
        assert f"{folder / file}; row 2 " in said, kind


# ------------------------------------------------------------------------------------------------ labels


@pytest.mark.parametrize(
    ("file", "column", "mean"),
    [
        ("clicks.csv", "click", 0.25),
        ("converted.csv", "converted", 0.1),
        ("bought.csv", "bought", 0.25),
        ("converted.jsonl", "converted", 0.1),
        ("clicks.parquet", "click", 0.25),
        ("clicks.npy", "click", 0.25),
    ],
)
def test_labels_are_no_probabilities_unless_somebody_says_so(
    file: str, column: str, mean: float, folder: Path, privsweep: Command
) -> None:
    place = f"{folder / file},{column}"
    said = refusal(privsweep, "labels", "--prior", f"column({place})", "--bag-size", 2)
    assert f"their mean, {mean}, or scores of a calibrated model" in said
    assert said.endswith(f"write certain({place}).\n")
    shown = printed(privsweep, "labels", "--prior", f"certain({place})", "--bag-size", 2)
    assert shown["prior"].startswith(f"column({place},sha256:")


def test_probabilities_may_have_decimal_commas(folder: Path, privsweep: Command) -> None:
    fingerprints = [
        printed(privsweep, "labels", "--prior", f"column({folder / file},score)", "--bag-size", 2)["prior"][
            -65:
        ]
        for file in ("clicks.csv", "commas.csv")
    ]
    assert fingerprints[0] == fingerprints[1]


# ------------------------------------------------------------------------------------------------ scores

SCORES = [
    *("semicolon.csv", "decimal-comma.csv", "quoted-comma.csv", "tab.tsv", "bar.csv", "blank.csv"),
    *("quoted-header.csv", "sep-line.csv", "sep-semicolon.csv", "utf16.csv", "utf16-without-mark.csv"),
    *(
        "mark.csv",
        "windows.csv",
        "yes-no.csv",
        "t-f.csv",
        "truth.csv",
        "in-out.csv",
        "member.csv",
        "sign.csv",
    ),
    *("one.csv", "real.csv", "large.csv", "large.jsonl", "large.parquet", "gzip-named.csv", "bz2-named.csv"),
    "gzip.jsonl.gz",
]


@pytest.fixture(scope="module")
def correct() -> int:
    """Correct guesses about the 50 highest and 50 lowest scores, which have no ties there."""
    ranked = sorted(people.SCORES)
    values = [score for score, _ in ranked]
    assert values[49] < values[50]
    assert values[-51] < values[-50]
    return sum(bit for _, bit in ranked[-50:]) + sum(1 - bit for _, bit in ranked[:50])


@pytest.mark.parametrize("file", ["scores.csv", "scores.jsonl", *(f"scores-{name}" for name in SCORES)])
def test_every_spelling_of_the_same_scores_gives_the_same_audit(
    file: str, correct: int, folder: Path, privsweep: Command
) -> None:
    shown = printed(privsweep, "audit", "--scores", folder / file, *AUDIT)
    assert (shown["canaries"], shown["correct"]) == (200, correct)


def test_infinite_scores_are_ranked(correct: int, folder: Path, privsweep: Command) -> None:
    for words in ([], ["--clearest"], ["--rates"], ["--one-sided"]):
        assert printed(privsweep, "audit", "--scores", folder / "scores-infinite.csv", *AUDIT, *words)
    shown = printed(privsweep, "audit", "--scores", folder / "scores-infinite.csv", *AUDIT)
    assert shown["correct"] == correct, "the infinite scores are among the 50 highest"


# ------------------------------------------------------------------------------------------------ refused

FORMATS = [
    ("book.xlsx", "is an Excel workbook; export its sheet as CSV"),
    ("old.xls", "is an old Excel workbook; export its sheet as CSV"),
    ("sheet.ods", "is an OpenDocument file; export its sheet as CSV"),
    ("zipped.csv", "is a zip archive; unpack it"),
    ("net.pt", "is a PyTorch file; "),
    ("table.feather", "is a Feather or Arrow file; write it as Parquet"),
    ("named.csv", "is a Feather or Arrow file; write it as Parquet"),
    ("list.pkl", "is a Python pickle; write it as Parquet or NPY"),
    ("scores.csv.xz", "is an xz archive; unpack it"),
    ("data.h5", "is an HDF5 file; "),
    ("page.csv", "is an HTML page; "),
    ("noise.csv", "is a binary file; "),
]

SENTENCES = [
    ("cut.csv.gz", "its compressed data are truncated or damaged"),
    ("cut.parquet", "the file is truncated or damaged"),
    ("long-row.csv", "Expected as many values in each row of {} as in its header, 2, got 3 in row 2; "),
    ("comma.csv", "Expected as many values in each row of {} as in its header, 2, got 3 in row 1; "),
    ("open.csv", "Expected closed quotation marks in {}, but one in row 2 is never closed"),
    ("thousands.csv", "in the column score of {}, got '1,234' in row 1; write a decimal point"),
    ("word.csv", "Expected numbers in the column score of {}, got 'high' in row 2."),
    ("escape.csv", "in the column score of {}, got '\\x1b[31m' in row 2."),
    ("bits.csv", "Expected inclusion bits 1 and 0 in the column included of {}, got 2 in row 2."),
    ("signs.csv", "Expected inclusion bits 1 and -1 in the column included of {}, got 0 in row 2."),
    ("array.json", "Expected one JSON object on each line of {}, got a JSON array."),
    (
        "twice.jsonl",
        "Expected one JSON object in line 2 of {}: names and texts in double quotation marks, no name twice",
    ),
    ("nested.jsonl", "Expected values in the column score of {}; row 2 has an array."),
    ("blank.csv", "Expected a value in each row of the column included of {}; row 2 has no value."),
    ("other\x1b.csv", "its columns are '\\x1b[31mred\\x07', 'included'."),
    ("header.csv", "Expected 1 to 100000000 rows in {}, got 0."),
]


@pytest.mark.parametrize(("file", "sentence"), FORMATS)
def test_a_format_that_is_not_read_is_named(
    file: str, sentence: str, folder: Path, privsweep: Command
) -> None:
    said = refusal(privsweep, "audit", "--scores", folder / file, *AUDIT)
    assert f"Expected a Parquet, CSV, JSONL, NPY or NPZ file, but {folder / file} {sentence}" in said
    law = f"column({folder / file},score)"
    assert sentence in refusal(privsweep, "membership", "--law", law, "--records", 9)
    assert sentence in refusal(privsweep, "labels", "--prior", law, "--bag-size", 2)


@pytest.mark.parametrize("words", [["epsilon", "--delta", "1e-5", "--run"], ["plan"], ["table", "show"]])
def test_bytes_do_not_reach_the_terminal(words: list[str], folder: Path, privsweep: Command) -> None:
    assert f"{folder / 'noise.csv'}" in refusal(privsweep, *words, folder / "noise.csv")


@pytest.mark.parametrize(("file", "sentence"), SENTENCES)
def test_a_row_that_cannot_be_read_is_named(
    file: str, sentence: str, folder: Path, privsweep: Command
) -> None:
    assert sentence.format(folder / file) in refusal(privsweep, "audit", "--scores", folder / file, *AUDIT)
