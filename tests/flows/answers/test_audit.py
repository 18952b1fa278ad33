"""`privsweep audit`: from a file of scores, or from counts, to refuted epsilons; and its errors."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from flows.answers.audits.audit import audited, counted, read_scores
from flows.answers.show import NEIGHBOURS
from privcore import Point, evaluate, find, find_problem
from privsweep import ask
from tests.flows.small_store import Command


def content(privsweep: Command, *words: object, design: str | None = "independent") -> Any:
    stated = [] if design is None else ["--design", design]
    return privsweep.told("audit", *words, *stated, "--delta", "1e-5")


def written(file: Path, scores: np.ndarray, included: np.ndarray) -> Path:
    """Write a CSV file, or a Parquet file with bits of type bool, as the name says."""
    if file.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.table({"score": scores, "included": included.astype(bool)}), file)
    else:
        lines = [f"{score!r},{bit}" for score, bit in zip(scores.tolist(), included.tolist(), strict=True)]
        file.write_text("\n".join(["score,included", *lines]))
    return file


def gaussian(canaries: int, mu: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    included = rng.integers(0, 2, canaries)
    return rng.standard_normal(canaries) + mu * included, included


def test_counts_refute_what_the_methods_say(privsweep: Command) -> None:
    shown = content(privsweep, "--counts", 100_000, 1500, 1429, "--claimed-epsilon", 2)
    assert shown["refuted_epsilon"] == {
        "auditing.tightest": pytest.approx(2.7958, abs=5e-5),
        "auditing.combined": pytest.approx(2.7867, abs=5e-5),
        "auditing.approximate": pytest.approx(2.7867, abs=5e-5),
        "auditing.steinke": pytest.approx(2.6688, abs=1e-4),
    }
    gaussian = pytest.approx(3.2992, abs=5e-5)
    assert shown["model_based_epsilon"] == {"auditing.tightestmu": gaussian, "auditing.gaussian": gaussian}
    assert shown["claim"]["refuted"] is True
    assert max(shown["claim"]["p_value"].values()) < 0.05


def test_a_claim_is_refuted_where_the_refuted_epsilon_is_above_it(privsweep: Command) -> None:
    refuted = content(privsweep, "--counts", 1000, 100, 90)["refuted_epsilon"]["auditing.tightest"]
    for claim, expected in ((refuted * 0.999, True), (refuted * 1.001, False)):
        shown = content(privsweep, "--counts", 1000, 100, 90, "--claimed-epsilon", claim)
        assert shown["claim"]["refuted"] is expected


def test_a_claim_is_refuted_by_the_best_of_three_bounds(privsweep: Command) -> None:
    words = ["--counts", "1000", "100", "90", "--delta", "1e-4", "--claimed-epsilon", "1.615"]
    claim = privsweep.told("audit", *words, "--design", "independent")["claim"]
    assert claim["refuted"] is True
    assert claim["p_value"]["auditing.exact"] < 0.0467
    assert claim["p_value"]["auditing.recursion"] > 0.05


@pytest.mark.parametrize(
    ("claim", "refuted"),
    [
        ("gaussian(sigma=2)", True),
        ("gaussian(sigma=1)", False),
        ("laplace(scale=2); gaussian(sigma=3)", True),
    ],
)
def test_any_claim_has_its_p_value_beside_the_refuted_epsilon(
    claim: str, refuted: bool, privsweep: Command
) -> None:
    counts: dict[str, Any] = {"canaries": 1000, "guesses": 100, "correct": 90, "design": "independent"}
    shown = content(privsweep, "--counts", 1000, 100, 90, "--claim", claim)
    p_value = ask("audit-claim-tail", **counts, phases=claim).upper
    assert shown["claim"] == {
        "mechanism": claim,
        "p_value": {"auditing.claimed": pytest.approx(p_value)},
        "refuted": refuted,
    }
    assert shown["refuted_epsilon"] == content(privsweep, "--counts", 1000, 100, 90)["refuted_epsilon"]
    words = ["--counts", "1000", "100", "90", "--design", "independent", "--delta", "0", "--claim", claim]
    assert privsweep("audit", *words) == 0
    verdict, meaning = privsweep.out.splitlines()[-2:]
    stated = "refuted" if refuted else "not refuted, which does not confirm it"
    assert verdict.startswith(f"claim {claim}: {stated}; p-value at most ")
    assert meaning == "p-value: largest probability of 90 or more correct guesses if the claim is true"


def test_the_claim_of_a_file_is_that_of_its_pairs(privsweep: Command, tmp_path: Path) -> None:
    (tmp_path / "claim.csv").write_text("epsilon,delta\n1,1e-5\n")
    claims = f"profile(curve={tmp_path / 'claim.csv'})", "guarantee(epsilon=1,delta=1e-5)"
    file, stated = (content(privsweep, "--counts", 1000, 200, 160, "--claim", claim) for claim in claims)
    assert file["claim"]["p_value"] == pytest.approx(stated["claim"]["p_value"], rel=1e-8)


@pytest.mark.thorough
def test_scores_far_from_a_centre_are_guessed_more_often_right(privsweep: Command, tmp_path: Path) -> None:
    scores, included = gaussian(3000, 1.5, 9)
    file = written(tmp_path / "s.csv", scores + 4.0, included)
    words = ("--scores", file, "--guesses", 1000)
    halves, clearest = (content(privsweep, *words, *more)["correct"] for more in ((), ("--clearest",)))
    stated = content(privsweep, *words, "--clearest", "--centre", 4.75)["correct"]
    assert min(clearest, stated) >= halves - 10
    assert abs(clearest - stated) <= 20


def test_csv_and_parquet_lead_to_the_same_audit(privsweep: Command, tmp_path: Path) -> None:
    scores, included = gaussian(2000, 1.5, 7)
    words = ("--guesses", 200, "--claimed-epsilon", 1, "--null-check", 50)
    audits = [
        content(privsweep, "--scores", written(tmp_path / name, scores, included), *words)
        for name in ("s.csv", "s.parquet")
    ]
    assert audits[0] == audits[1]
    assert audits[0]["canaries"] == 2000
    assert audits[0]["correct"] > 180
    assert audits[0]["claim"]["refuted"] is True
    assert audits[0]["null_check"]["audits"] == 50


def test_columns_have_names_and_guesses_may_be_one_sided(privsweep: Command, tmp_path: Path) -> None:
    file = tmp_path / "named.csv"
    file.write_text("loss,in\n" + "\n".join(f"{i},{str(i >= 12).lower()}" for i in range(24)))
    words = ("--scores", file, "--score-column", "loss", "--included-column", "in")
    assert content(privsweep, *words, "--guesses", 11, "--one-sided")["correct"] == 11
    assert content(privsweep, *words, "--guesses", 24)["correct"] == 24


def test_people_are_told_what_rests_on_a_model(privsweep: Command, tmp_path: Path) -> None:
    file = written(tmp_path / "s.parquet", *gaussian(1000, 1.0, 1))
    words = ["--scores", str(file), "--guesses", "132", "--delta", "1e-5", "--claimed-epsilon", "9"]
    assert privsweep("audit", *words, "--null-check", "20") == 0
    lines = privsweep.out.splitlines()
    assert lines[0].endswith("of 132 guesses about 1000 canaries correct")
    assert lines[1].startswith(
        "assumed design: each canary was in or out by its own fair coin (independent; "
    )
    assert [line.endswith("for every mechanism") for line in lines[5:8]] == [True] * 3
    for line, name in zip(lines[9:11], ("tightestmu", "gaussian"), strict=True):
        assert line.startswith(f"auditing.{name}")
        assert line.endswith("model-based: only if the mechanism behaves like Gaussian noise")
    assert lines[11].startswith("refuted mu of Gaussian differential privacy: ")
    assert lines[12].startswith("claim epsilon = 9: not refuted, which does not confirm it; p-value ")
    assert " of 20 audits with shuffled inclusion bits refute some epsilon > 0" in lines[13]


def test_more_alternatives_are_audited_from_counts(privsweep: Command) -> None:
    shown = content(privsweep, "--counts", 1000, 100, 60, "--alternatives", 10, design=None)
    names = ["auditing.tightest", "auditing.combined", "auditing.approximate"]
    assert list(shown["refuted_epsilon"]) == names
    assert shown["refuted_epsilon"]["auditing.combined"] > 2.0


def halves(folder: Path) -> Path:
    """A file with one included record in each two consecutive rows, whose score is higher in most of them."""
    rng = np.random.default_rng(11)
    included = np.stack([first := rng.integers(0, 2, 200), 1 - first], axis=1).ravel()
    return written(folder / "halves.csv", rng.standard_normal(400) + 2.0 * included, included)


def test_a_file_with_exactly_half_included_is_not_taken_for_independent_coins(
    privsweep: Command, tmp_path: Path
) -> None:
    words = ["--scores", str(halves(tmp_path)), "--guesses", "100"]
    assert privsweep("audit", *words, "--delta", "1e-5") == 2
    assert privsweep.err.startswith(
        "privsweep: Expected --design, since exactly half of the 400 canaries are included, one of each two "
        "consecutive rows: independent ("
    )
    found = {
        word: content(privsweep, *words, design=word) for word in ("independent", "exactly-half", "pairs")
    }
    refuted = {word: each["refuted_epsilon"]["auditing.tightest"] for word, each in found.items()}
    assert [found[word]["canaries"] for word in found] == [400, 400, 200]
    assert [found[word]["neighbours"] for word in found] == ["add-remove", "add-remove", "replace-one"]
    assert found["independent"]["correct"] == found["exactly-half"]["correct"]
    assert 0.5 < refuted["exactly-half"] < 0.9 * refuted["independent"]
    assert refuted["pairs"] > 0.5


def test_two_of_two_records_are_pairs_and_more_are_candidates(privsweep: Command, tmp_path: Path) -> None:
    words = ("--scores", halves(tmp_path), "--guesses", 100, "--null-check", 40)
    pairs = content(privsweep, *words, design="pairs")
    assert content(privsweep, *words, "--alternatives", 2, design="candidates") == pairs
    assert pairs["null_check"]["refuted"] <= 8
    four = [bits for _ in range(50) for bits in (1, 0, 0, 0)]
    file = written(tmp_path / "four.csv", np.arange(200.0) % 4.0 - 5.0 * np.array(four), np.array(four))
    shown = content(privsweep, "--scores", file, "--guesses", 20, "--alternatives", 4, design=None)
    assert (shown["canaries"], shown["correct"], shown["design"]) == (50, 0, "candidates")
    assert privsweep("audit", *words, "--delta", "1e-5", "--design", "pairs", "--clearest") == 2
    assert "without --design pairs, whose guess is the record with" in privsweep.err


@pytest.mark.parametrize(("correct", "hinted"), [(4, True), (80, False), (85, False)])
def test_far_fewer_correct_guesses_than_by_chance_get_a_hint(
    correct: int, hinted: bool, privsweep: Command
) -> None:
    hints = content(privsweep, "--counts", 1000, 200, correct)["hints"]
    assert bool(hints) == hinted
    if hinted:
        assert "4 or fewer of 200 guesses are correct with probability at most 4.1e-53;" in hints[0]
        assert "with the other sign, --confidence 0.975 keeps the error at 0.05" in hints[0]


def test_scores_without_a_leak_are_suspected_at_most_17_times_in_200() -> None:
    """At 95 %: 10 are expected at most, and then more than 17 have a probability of 1.2 %."""
    from privcore.auditing.scores import guess

    question = {"canaries": 1000, "guesses": 100, "delta": 1e-5}
    suspected = 0
    for seed in range(200):
        scores, included = gaussian(1000, 0.0, seed)
        correct = guess(scores, 100).correct(included.astype(float))
        problem = find_problem("audit-epsilon").from_fields({**question, "correct": correct})
        suspected += evaluate(Point(problem=problem, method=find("auditing.combined")())).lower > 0.0
    assert 1 <= suspected <= 17


def test_the_null_check_counts_what_the_audits_of_shuffled_bits_refute(tmp_path: Path) -> None:
    file = written(tmp_path / "s.csv", *gaussian(400, 2.0, 2))
    counts = counted(read_scores(file, "score", "included"), 60, shuffles=300)
    shown = audited(counts, 1e-5, 0.9)
    question = {"canaries": 400, "guesses": 60, "delta": 1e-5, "audit_confidence": 0.9}
    refuting = set()
    for correct in set(counts.shuffled):
        problem = find_problem("audit-epsilon").from_fields({**question, "correct": correct})
        if evaluate(Point(problem=problem, method=find("auditing.tightest")())).lower > 0.0:
            refuting.add(correct)
    assert shown["null_check"]["refuted"] == sum(correct in refuting for correct in counts.shuffled)
    assert 0 < shown["null_check"]["refuted"] <= shown["null_check"]["nominal"] + 3.0 * math.sqrt(27.0)
    assert shown["null_check"]["nominal"] == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("text", "guesses", "sentence"),
    [
        ("score,included\n1,1\nnan,0\n", 2, "row 2 has no value, but the word 'nan'"),
        ("score,included\n1,1\n,0\n", 2, "row 2 has no value."),
        ("score,included\n1,1\n2,2\n", 2, "Expected inclusion bits 1 and 0 in the column"),
        ("score,included\n1,1\n2,\n", 2, "Expected a value in each row of the column included of"),
        (
            "score,included\n1,yes\n2,no\n",
            2,
            "Expected --design, since exactly half of the 2 canaries are included",
        ),
        ("score,member\n1,1\n2,0\n", 2, "Expected a column named included in"),
        ("score,score,included\n1,1,1\n", 0, "Expected one column named score in"),
        (
            "score,included\n1,1\n2,0\n3,1\n",
            3,
            "Expected an even number of guesses, half in and half out, got 3.",
        ),
        ("score,included\n1,1\n2,1\n", 4, "Expected guesses <= canaries, got guesses=4, canaries=2."),
        ("score,included\n", 2, "Expected 1 to 100000000 rows in"),
        ("", 2, "Expected 1 to 100000000 rows in"),
        ("score,included\n" + "1,1\n" * 100, 2, "Expected canaries that are included with probability 1/2"),
    ],
)
def test_a_file_that_is_no_audit_is_refused(
    privsweep: Command, tmp_path: Path, text: str, guesses: int, sentence: str
) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(text)
    assert privsweep("audit", "--delta", "1e-5", "--scores", file, "--guesses", guesses) == 2
    assert privsweep.out == ""
    assert privsweep.err.startswith("privsweep: ")
    assert sentence in privsweep.err
    assert privsweep.err.count("\n") == 1


@pytest.mark.parametrize("claim", [20, 33, 700])
def test_a_claim_that_explains_every_count_is_not_refuted(claim: float, privsweep: Command) -> None:
    shown = content(privsweep, "--counts", 1000, 100, 90, "--claimed-epsilon", claim)["claim"]
    assert shown["p_value"].keys() >= {"auditing.exact", "auditing.recursion"}
    assert not shown["refuted"]


@pytest.mark.parametrize(("count", "confidence"), [(1, 0.5), (2, 0.75)])
def test_counts_that_a_mechanism_without_loss_attains_refute_exactly_nothing(
    count: int, confidence: float, privsweep: Command
) -> None:
    shown = content(privsweep, "--counts", count, count, count, "--confidence", confidence)
    assert set(shown["refuted_epsilon"].values()) == {0.0}
    assert set(shown["refuted_mu"].values()) == {0.0}


@pytest.mark.parametrize("alternatives", [2, 5])
def test_an_answer_in_python_names_the_neighbouring_relation_and_the_estimates(alternatives: int) -> None:
    counts: dict[str, Any] = {"canaries": 100, "guesses": 50, "correct": 40, "delta": 1e-5}
    stated: dict[str, Any] = (
        {"design": "independent"} if alternatives == 2 else {"alternatives": alternatives}
    )
    found = ask("audit-epsilon", **counts, **stated)
    relation = NEIGHBOURS["add-remove" if alternatives == 2 else "replace-one"]
    assert found.neighbours == relation
    assert f"neighbours {relation}" in str(found).splitlines()
    assert relation in found._repr_html_()
    assert found.estimates["auditing.tightestmu"] > found.lower
    assert f"{found.estimates['auditing.tightestmu']:.6g} (auditing.tightestmu)" in str(found)
    assert ask("unamplified-epsilon", sigma=1.0, delta=1e-5).neighbours == ""
