"""Distributions of a record: canonical spellings, sums against direct sums, and columns of files."""

import math
from pathlib import Path

import mpmath
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from privcore import DomainError, Point, Status, evaluate, find, find_problem
from privcore.distributions.record_infinite import hurwitz
from privcore.distributions.record_notation import canonical_law, law

INFINITE = ("geometric(0.5)", "geometric(0.99)", "zipf(1.01)", "zipf(1.5)", "zipf(3)", "zipf(50)")
FINITE = ("uniform(7)", "bernoulli(0.3)", "zipf(1.2,40)", "atoms(0.5,0.2,0.2,0.1)")


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("uniform( 10 )", "uniform(10)"),
        ("uniform(1e6)", "uniform(1000000)"),
        ("bernoulli(.10)", "bernoulli(0.1)"),
        ("geometric(5e-1)", "geometric(0.5)"),
        ("zipf (2.0)", "zipf(2)"),
        ("zipf(1, 100.0)", "zipf(1,100)"),
        ("zipf(0,5)", "uniform(5)"),
        ("atoms(0.2,0,0.5,0.30)", "atoms(0.5,0.3,0.2)"),
        ("mixed( .25, uniform(2))", "mixed(0.25,uniform(2))"),
        ("mixed(0,zipf(2))", "zipf(2)"),
    ],
)
def test_a_law_has_one_spelling(written: str, canonical: str) -> None:
    assert canonical_law(written) == canonical
    assert canonical_law(canonical) == canonical
    assert law(canonical).text == canonical


@pytest.mark.parametrize(
    "text",
    [
        *("uniform", "uniform()", "uniform(2,3)", "zipf(1,2,3)", "zipf(s)", "atoms()", "atoms(0.5,x)"),
        *("mixed(0.5)", "mixed(x,uniform(2))", "mixed(0.5,mixed(0.5,uniform(2)))", "mixed(0.5,normal(0,1))"),
        *("column(a)", "poisson(3)", "0.5,0.5", "uniform(nan)", "uniform(2) ,"),
    ],
)
def test_what_is_no_law_has_no_spelling(text: str) -> None:
    assert canonical_law(text) is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("uniform(0)", r"Expected a whole number K of uniform\(K\) in \{1, ..., 10\^12\}, got 0\."),
        ("uniform(2.5)", r"Expected a whole number K of uniform\(K\) in .*, got 2\.5\."),
        ("bernoulli(1.2)", r"Expected p of bernoulli\(p\) in \[0, 1\], got 1\.2\."),
        ("geometric(1)", r"Expected r of geometric\(r\) in \[1e-06, 0.99999\], got 1\."),
        ("zipf(1)", r"Expected s of zipf\(s\), with infinitely many atoms, in \[1.01, 50\], got 1\."),
        ("zipf(-1,5)", r"Expected s of zipf\(s,K\) in \[0, 50\], got -1\."),
        ("zipf(1,1e9)", r"Expected a whole number K of zipf\(s,K\) in \{1, ..., 10\^7\}, got 1000000000\."),
        ("atoms(0.5,0.3)", r"Expected probabilities that sum to 1, got 0\.8\."),
        ("atoms(1.5,-0.5)", r"Expected probabilities of atoms in \[0, 1\], got 1\.5\."),
        ("atoms(0.5,0.6,-0.1)", r"Expected probabilities of atoms in \[0, 1\], got -0\.1\."),
        ("mixed(1,uniform(2))", r"Expected w of mixed\(w,LAW\) in \[0, 1\), got 1\."),
        (f"atoms({','.join(['0.0001'] * 10_001)})", r"Expected at most 10000 atoms, got 10001\."),
    ],
)
def test_an_impossible_law_is_refused_with_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(DomainError, match=rf"\A{sentence}\Z"):
        canonical_law(text)


def test_a_sum_within_a_billionth_of_1_is_divided_out() -> None:
    found = law("atoms(0.5,0.3,0.2000000005)").atoms(0, 3)
    assert found.p.sum() == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("text", [*FINITE, *INFINITE, "mixed(0.3,zipf(2))", "mixed(0.1,uniform(4))"])
def test_atoms_fall_and_what_comes_after_completes_them(text: str) -> None:
    found = law(text)
    last = int(found.reach(1e-3))
    atoms = found.atoms(0, last)
    assert (np.diff(atoms.p) < 0.0).all()
    assert atoms.p + atoms.q == pytest.approx(np.ones(last), rel=1e-14)
    rest = found.tail_sum(1.0, last)
    assert (atoms.number * atoms.p).sum() + rest + found.continuous == pytest.approx(1.0, rel=1e-13)
    assert found.tail_sum(1.0, 0) == pytest.approx(1.0 - found.continuous, rel=1e-13)
    p, q = found.at(np.arange(1.0, last + 1.0))
    np.testing.assert_allclose([p, q], [atoms.p, atoms.q], rtol=1e-15)
    assert found.finite or found.atoms(last, last + 1).p[0] < 1e-3


@pytest.mark.parametrize("text", INFINITE)
def test_sums_of_powers_are_differences_of_those_that_come_later(text: str) -> None:
    found = law(text)
    p, _ = found.at(np.arange(6.0, 21.0))
    for power in (1.0, 1.5, 3.0):
        between = found.tail_sum(power, 5) - found.tail_sum(power, 20)
        assert between == pytest.approx((p**power).sum(), rel=1e-10)


def test_a_probability_near_1_has_an_exact_remainder() -> None:
    assert law("bernoulli(1e-12)").atoms(0, 1).q[0] == 1e-12
    assert law("zipf(50)").atoms(0, 1).q[0] == pytest.approx(float(mpmath.zeta(50) - 1), rel=1e-12)
    assert law(f"atoms({1.0 - 1e-13!r},1e-13)").atoms(0, 1).q[0] == pytest.approx(1e-13, rel=1e-9)
    heavy = law("zipf(40,1000)").atoms(0, 1).q[0]
    assert heavy == pytest.approx(float(mpmath.zeta(40) - 1), rel=1e-12)


def test_the_zeta_function_has_its_error() -> None:
    with mpmath.workdps(40):
        for s in (1.01, 1.5, 2.0, 7.3, 40.0):
            for a in (1, 2, 60, 10**4):
                terms = mpmath.fsum((a + k) ** -mpmath.mpf(s) for k in range(200))
                base = mpmath.mpf(a + 200)
                truth = terms + base ** (1 - mpmath.mpf(s)) / (mpmath.mpf(s) - 1) + base ** -mpmath.mpf(s) / 2
                factor = s * base ** (-mpmath.mpf(s) - 1)
                for i in range(1, 12):
                    truth += mpmath.bernoulli(2 * i) / mpmath.factorial(2 * i) * factor
                    factor *= (mpmath.mpf(s) + 2 * i - 1) * (mpmath.mpf(s) + 2 * i) / base**2
                found = hurwitz(s, np.array([float(a)]))[0]
                assert abs(found - truth) <= 2e-15 * truth, (s, a)
    assert math.isinf(hurwitz(1.0, np.ones(1))[0])


# ------------------------------------------------------------------------------------------------ columns


@pytest.fixture
def table() -> pa.Table:
    return pa.table(
        {
            "city": ["Rome", "Oslo", "Rome", "Bern", "Rome", "Oslo"],
            "age": [1.5, -0.0, 1.5, 7.0, 1.5, 0.0],
            "count": [3, 0, 2, 1, 0, 0],
            "share": [0.5, 1.0, 2.0, 1.0, 0.0, 0.0],
            "hole": [1.0, None, 2.0, 3.0, 4.0, float("nan")],
            "word": ["a", "b", None, "c", "d", "e"],
        }
    )


@pytest.fixture
def file(tmp_path: Path, table: pa.Table) -> Path:
    pyarrow.parquet.write_table(table, tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


@pytest.mark.parametrize("text", ["column({},city)", "column({},age)", "counts({},count)"])
def test_a_law_of_a_column_has_the_frequencies_of_its_values(file: Path, text: str) -> None:
    canonical = canonical_law(text.format(file))
    assert canonical is not None
    assert canonical_law(canonical) == canonical
    found = law(canonical)
    assert found.text == canonical
    assert found.atoms(0, 3).p == pytest.approx(np.array([3.0, 2.0, 1.0]) / 6.0, rel=1e-15)


def test_the_hash_knows_neither_the_format_nor_the_order_nor_the_names(file: Path, table: pa.Table) -> None:
    other = file.with_name("other.csv")
    pyarrow.csv.write_csv(table.select(["city"]).take([5, 3, 1, 0, 2, 4]), other)
    texts = [f"column({file},city)", f"column({file},age)", f"column({other},city)", f"counts({file},count)"]
    hashes = {(canonical_law(text) or "").rpartition("sha256:")[2] for text in texts}
    assert len(hashes) == 1
    kept = table.column("city").dictionary_encode()
    pyarrow.parquet.write_table(pa.table({"city": kept}), file.with_name("kept.parquet"))
    encoded = canonical_law(f"column({file.with_name('kept.parquet')},city)")
    assert (encoded or "").rpartition("sha256:")[2] in hashes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("column({},town)", r"Expected a column named town in .*; its columns are 'city', 'age', .*\."),
        ("column({},hole)", r"Expected a value in each row of the column hole of .*; row 2 has no value\."),
        ("column({},word)", r"Expected a value in each row of the column word of .*; row 3 has no value\."),
        ("column({}x,city)", r"Expected a file with a column of categories, but .* is not a file\."),
        ("counts({},share)", r"Expected counts \(whole .*\) in the column share of .*, got 0\.5 in row 1\."),
        ("counts({},city)", r"Expected counts in the column city of .*, got 'Rome' in row 1\."),
        ("counts({},hole)", r"Expected a value in each row of the column hole of .*; row 2 has no value\."),
    ],
)
def test_a_column_that_is_no_law_is_refused_with_one_sentence(file: Path, text: str, sentence: str) -> None:
    with pytest.raises(DomainError, match=rf"\A{sentence}\Z"):
        canonical_law(text.format(file))


def test_a_file_that_changed_gives_no_answer(file: Path, table: pa.Table) -> None:
    problem = find_problem("membership-diversity").from_fields({"law": f"column({file},city)"})
    point = Point(problem=problem, method=find("membership.diversity")())
    law.cache_clear()
    assert evaluate(point).ok
    law.cache_clear()
    pyarrow.parquet.write_table(table.slice(0, 4), file)
    found = evaluate(point)
    assert found.status is Status.FAILED
    assert found.detail.endswith(
        "has changed since it was first used, or an earlier release read its texts as numbers; restore the "
        "file, or refer to the column again without the hash."
    )
