"""Samples of an unknown distribution: enumerated splits, files, and the frequency of failed bounds."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

from privcore import Answer, DomainError, Point, Status, evaluate, find
from privcore.distributions.columns import canonical_sample, sample_counts
from privcore.membership.data.mcdiarmid import mean_distance
from tests.privcore.draws import problem

Array = NDArray[np.float64]


def ask(sample: str, records: int, **fields: Any) -> Answer:
    asked = problem("membership-sample-advantage", sample=sample, records=records, **fields)
    return evaluate(Point(problem=asked, method=find("membership.mcdiarmid")()))


def by_hand(counts: tuple[int, ...], records: int, odds: float) -> float:
    """Mean distance over all splits, by enumeration."""
    sample = [k for k, count in enumerate(counts) for _ in range(count)]
    rest = len(sample) - records
    distances = []
    for chosen in itertools.combinations(sample, records):
        part = np.bincount(chosen, minlength=len(counts))
        gap = part / records - odds * (np.array(counts) - part) / rest
        distances.append(np.maximum(gap if odds >= 1.0 else -gap / odds, 0.0).sum())
    return float(np.mean(distances))


def worst_case(law: Array, records: int, odds: float) -> float:
    """Largest advantage over all learners, as a sum over binomial distributions."""
    total = 0.0
    for p in law:
        for j in range(records + 1):
            weight = math.comb(records, j) * p**j * (1.0 - p) ** (records - j)
            gap = j / records - odds * p
            total += weight * max(0.0, gap if odds >= 1.0 else -gap / odds)
    return total


@pytest.mark.parametrize("counts", [(3, 2, 1), (5, 4), (1,) * 7, (4, 4, 2, 1), (9,), (8, 1)])
@pytest.mark.parametrize("odds", [1.0, 0.2, 0.7, 1.3, 4.0])
def test_the_mean_over_splits_is_that_of_all_splits(counts: tuple[int, ...], odds: float) -> None:
    for records in (1, 2, 4, sum(counts) - 1):
        found = mean_distance(np.array(counts), records, odds)
        assert found == pytest.approx(by_hand(counts, records, odds), abs=1e-13)


LAW = np.arange(1.0, 31.0) ** -1.2 / np.sum(np.arange(1.0, 31.0) ** -1.2)


@pytest.mark.parametrize(("records", "odds"), [(50, 1.0), (50, 0.7), (50, 1.5), (5, 1.0), (300, 1.0)])
def test_the_mean_over_splits_overestimates_on_average_and_its_bound_fails_rarely(
    records: int, odds: float
) -> None:
    size, level = 400, 0.9
    truth = worst_case(LAW, records, odds)
    rng = np.random.default_rng(records)
    samples = [counts[counts > 0] for counts in rng.multinomial(size, LAW, size=300)]
    means = np.array([mean_distance(counts, records, odds) for counts in samples])
    assert means.mean() > truth - 4.0 * means.std() / math.sqrt(means.size)
    bounds = np.array(
        [
            ask(",".join(map(str, counts)), records, odds=odds, confidence_level=level).upper
            for counts in samples
        ]
    )
    assert (bounds >= truth).mean() >= level
    assert bounds.mean() < truth + 0.5


def test_all_splits_together_leave_less_to_chance_than_one() -> None:
    """A single split of n of N records may move by 1 / n, so its margin is far wider."""
    answer = ask("600,400,300,200,100,100,100,100,100,100,50,50", 200, confidence_level=0.95)
    counts = sample_counts("600,400,300,200,100,100,100,100,100,100,50,50")
    margin = answer.upper - mean_distance(counts, 200, 1.0)
    assert margin == pytest.approx(math.sqrt(2.0 * math.log(20.0) / 2200.0), rel=1e-6)
    assert margin < 0.6 * math.sqrt(0.5 * math.log(20.0) * (1.0 / 200.0 + 1.0 / 2000.0))


def test_unequal_odds_share_the_error_with_equal_odds() -> None:
    sample = ",".join(["40"] * 50)
    even, uneven, far = (ask(sample, 100, odds=odds).upper for odds in (1.0, 1.1, 1e6))
    assert uneven < even
    spread = math.sqrt(math.log(40.0) / math.log(20.0))
    rest = mean_distance(sample_counts(sample), 100, 1.0)
    assert far == pytest.approx(rest + spread * (even - rest), rel=1e-6)
    assert ask(sample, 100, odds=1e-6).upper == pytest.approx(far)


def test_one_category_tells_nothing_and_distinct_ones_tell_all() -> None:
    one = ask("100000000", 1000)
    assert 0.0 < one.upper < 3e-4
    assert ask(",".join(["1"] * 1000), 10).upper == 1.0


def test_the_answer_has_the_confidence_that_is_asked_for_and_never_exceeds_1() -> None:
    answer = ask("3,2,1", 2, confidence_level=0.99)
    assert (answer.lower, answer.upper, answer.confidence) == (0.0, 1.0, 0.99)


def test_a_large_sample_keeps_its_digits() -> None:
    """Sampling with and without replacement agree if the sample is large."""
    law = np.array([0.5, 0.3, 0.2])
    for odds in (1.0, 0.9, 1.2):
        found = mean_distance(np.array([5 * 10**10, 3 * 10**10, 2 * 10**10]), 50, odds)
        assert found == pytest.approx(worst_case(law, 50, odds), rel=1e-7)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    table = pa.table({"city": ["a", "b", "a", "c"] * 25, "code": [1, 2, None, 2] * 25})
    parquet, csv = tmp_path / "t.parquet", tmp_path / "t.csv"
    pyarrow.parquet.write_table(table, parquet)
    pyarrow.csv.write_csv(table, csv)
    return parquet, csv


def test_a_column_counts_as_its_categories_in_either_format(files: tuple[Path, Path]) -> None:
    hashes = set()
    for file in files:
        sample = canonical_sample(f" column({file} , city)")
        assert sample is not None
        assert canonical_sample(sample) == sample
        hashes.add(sample.rpartition(",")[2])
        assert ask(sample, 3).upper == ask("25,50,25", 3).upper
    assert len(hashes) == 1


def test_a_column_that_changed_is_noticed(files: tuple[Path, Path]) -> None:
    asked = problem("membership-sample-advantage", sample=f"column({files[1]},city)", records=2)
    files[1].write_text("city\nx\ny\n")
    answer = evaluate(Point(problem=asked, method=find("membership.mcdiarmid")()))
    assert answer.status is Status.FAILED
    assert answer.detail.endswith(
        "has changed since it was first used, or an earlier release read its texts as numbers; restore the "
        "file, or refer to the column again without the hash."
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0,0", r"Expected a sample of 1 to 1000000000000 records, got 0\."),
        ("999999999999,2", r"Expected a sample of 1 to 1000000000000 records, got 1000000000001\."),
        (",".join(["1"] * 10_001), r"Expected at most 10000 counts, got 10001\."),
        (
            "column(/no/such/file,city)",
            r"Expected a file with a column of categories, but /no/such/file is not a file",
        ),
    ],
)
def test_a_bad_sample_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(DomainError, match=f"^{sentence}"):
        canonical_sample(text)


def test_a_missing_value_and_a_missing_column_are_named(files: tuple[Path, Path]) -> None:
    for file in files:
        with pytest.raises(
            DomainError, match=r"Expected a value in each row of the column code of .*; row 3 has no value"
        ):
            canonical_sample(f"column({file},code)")
        with pytest.raises(DomainError, match=r"its columns are 'city', 'code'\."):
            canonical_sample(f"column({file},town)")


@pytest.mark.parametrize("text", ["-1,2", "0.5,0.5", "1e3", "column(x)", "counts(a,b)", "", "1;2"])
def test_what_is_no_sample_is_refused_by_its_grammar(text: str) -> None:
    assert canonical_sample(text) is None
    with pytest.raises(DomainError, match=r"^Expected sample in \{counts of the categories"):
        problem("membership-sample-advantage", sample=text, records=1)


def test_a_sample_that_is_too_small_is_said_to_be() -> None:
    answer = ask("5,5", 10)
    assert answer.status is Status.NOT_APPLICABLE
    assert answer.detail == "The sample has 10 records; the bound needs more than records=10."
