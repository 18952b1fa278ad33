"""Designs of audits: each refutes a true claim of the relation that it names at most as often as stated."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import scipy

from flows.answers.audits.audit import INDEPENDENT, Design, Scored, counted
from privcore import DomainError, Point, evaluate, find, find_problem
from privcore.auditing import check_half_included, check_one_included, guess_candidates
from privcore.auditing.exact import exact_tail
from privcore.auditing.problems import probability_of_half

CANARIES, LEVEL = 200, 0.05
EPSILON = 1.0
REPLACED = math.log(2.0 * math.e - 1.0)
"""Epsilon of the mechanism about pairs if a record is replaced: 1.490; it is 1 if one is added or removed."""
CANDIDATES = 4


def coins(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 2, CANARIES)


def half(rng: np.random.Generator) -> np.ndarray:
    return np.asarray(rng.permutation(np.repeat([0, 1], CANARIES // 2)))


def one_of(records: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Return a function that includes one record of each set, all equally likely."""
    return lambda rng: np.asarray(
        np.eye(records, dtype=int)[rng.integers(0, records, CANARIES // records)].ravel()
    )


def responses(rng: np.random.Generator, included: np.ndarray) -> np.ndarray:
    """Scores 1 and 0: randomized responses, whose epsilon is exactly 1 if a canary is added or removed."""
    kept = rng.random(included.size) < 1.0 / (1.0 + math.exp(-EPSILON))
    return np.where(kept, included, 1 - included).astype(float)


def responses_about_pairs(rng: np.random.Generator, included: np.ndarray) -> np.ndarray:
    """Scores 1 and 0 in each pair: the right record with probability 1 - 1 / (2 e) if one of the pair is in.

    If both records are in, or none, the mechanism flips a fair coin. The probabilities of an answer change by
    factors of at most e if a record is added or removed, which one attains.
    """
    first, second = included.reshape(-1, 2).T
    says_first = np.where(first > second, 1.0 - 0.5 / math.e, np.where(first < second, 0.5 / math.e, 0.5))
    answer = rng.random(first.size) < says_first
    return np.stack([answer, ~answer], axis=1).ravel().astype(float)


def responses_about_sets(rng: np.random.Generator, included: np.ndarray) -> np.ndarray:
    """Score 1 for one record of each set: the included one e times as often as each other record."""
    sets = included.reshape(-1, CANDIDATES)
    weights = np.exp(EPSILON * sets)
    drawn = rng.random((len(sets), 1)) * weights.sum(axis=1, keepdims=True)
    answer = (np.cumsum(weights, axis=1) < drawn).sum(axis=1)
    return np.asarray(np.eye(CANDIDATES)[answer].ravel())


@dataclass(frozen=True, kw_only=True)
class Game:
    """A design, a mechanism, and the epsilon of the mechanism for the relation that the design refutes."""

    design: Design
    include: Callable[[np.random.Generator], np.ndarray]
    mechanism: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    relation: str
    epsilon: float

    @property
    def sets(self) -> int:
        return CANARIES // max(1, self.design.candidates)

    def correct(self, rng: np.random.Generator) -> int:
        """The number of correct guesses of one audit, which guesses about every canary or set."""
        included = self.include(rng)
        scored = Scored(scores=self.mechanism(rng, included), included=included.astype(float))
        clearest = not self.design.candidates
        centre = 0.5 if clearest else None
        return counted(scored, self.sets, design=self.design, clearest=clearest, centre=centre).correct

    @cache  # noqa: B019  the games live as long as the module
    def p_value(self, correct: int, claim: float) -> float:
        fields = {"canaries": self.sets, "guesses": self.sets, "correct": correct, **self.design.fields}
        problem = find_problem("audit-tail").from_fields({**fields, "claimed_epsilon": claim, "delta": 0.0})
        assert problem.relation() == self.relation
        return evaluate(Point(problem=problem, method=find("auditing.exact")())).upper


HALF, PAIRS = Design(word="exactly-half"), Design(word="pairs")
OF_FOUR = Design(word="candidates", alternatives=CANDIDATES)
ADD, REPLACE = "add-remove", "replace-one"
GAMES = {
    "independent": (INDEPENDENT, coins, responses, ADD, EPSILON),
    "independent, answers about pairs": (INDEPENDENT, coins, responses_about_pairs, ADD, EPSILON),
    "exactly-half": (HALF, half, responses, ADD, EPSILON),
    "exactly-half, answers about pairs": (HALF, half, responses_about_pairs, ADD, EPSILON),
    "pairs": (PAIRS, one_of(2), responses_about_pairs, REPLACE, REPLACED),
    "candidates": (OF_FOUR, one_of(CANDIDATES), responses_about_sets, REPLACE, EPSILON),
}


@pytest.mark.parametrize("runs", [200, pytest.param(2000, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", GAMES)
def test_a_true_claim_is_refuted_at_most_as_often_as_stated(name: str, runs: int) -> None:
    names = ("design", "include", "mechanism", "relation", "epsilon")
    game = Game(**dict(zip(names, GAMES[name], strict=True)))  # type: ignore[arg-type]
    rng = np.random.default_rng(int.from_bytes(name.encode(), "little"))
    counts = [game.correct(rng) for _ in range(runs)]
    error, power = (
        float(np.mean([game.p_value(correct, share * game.epsilon) <= LEVEL for correct in counts]))
        for share in (1.0, 0.4)
    )
    print(f"{name}, {game.relation}: error {error:.4f}, power at 0.4 epsilon {power:.4f}, {runs} runs")
    assert error <= LEVEL
    if "answers about pairs" not in name:
        assert power > 0.5, "the test could not fail"


def test_pairs_as_independent_coins_refute_a_true_claim_far_too_often() -> None:
    """So a file with exactly half of the canaries included is not taken for independent coins."""
    rng = np.random.default_rng(3)
    refuted = []
    for _ in range(200):
        included = one_of(2)(rng)
        correct = int((responses_about_pairs(rng, included) == included).sum())
        refuted.append(exact_tail(CANARIES, CANARIES, correct, EPSILON, 0.0)[1] <= LEVEL)
    assert np.mean(refuted) > 0.5


def largest_for_half(canaries: int, correct: int, epsilon: float) -> float:
    """The largest probability, for all epsilon-DP mechanisms, of this many correct guesses if half are in."""
    sets = [*itertools.product((0, 1), repeat=canaries)]
    column = {pair: place for place, pair in enumerate(itertools.product(sets, sets))}  # of P[guess | set]
    goal, rows = np.zeros(len(column)), []
    for (included, guess), place in column.items():
        if sum(included) == canaries // 2:
            right = sum(a == b for a, b in zip(included, guess, strict=True))
            goal[place] = -float(right >= correct)
        for changed in range(canaries):
            other = tuple(bit ^ (at == changed) for at, bit in enumerate(included))
            row = np.zeros(len(column))
            row[place] = 1.0
            row[column[other, guess]] = -math.exp(epsilon)
            rows.append(row)
    sums = np.kron(np.eye(len(sets)), np.ones(len(sets)))
    solved = scipy.optimize.linprog(
        goal, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(len(sets))
    )
    return -float(solved.fun) / math.comb(canaries, canaries // 2)


@pytest.mark.parametrize("correct", [3, 4])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_no_mechanism_beats_the_p_value_of_exactly_half_and_one_beats_that_of_coins(
    correct: int, epsilon: float
) -> None:
    low, high = exact_tail(4, 4, correct, epsilon, 0.0)
    largest = largest_for_half(4, correct, epsilon)
    assert low - 1e-9 <= largest <= min(1.0, high / probability_of_half(4)) + 1e-9
    assert largest > 1.02 * high


@pytest.mark.parametrize("canaries", [1, 2, 3, 10, 11, 1000, 3001])
def test_the_probability_of_half_is_at_most_the_exact_one_and_close(canaries: int) -> None:
    exact = math.comb(canaries, canaries // 2) / 2**canaries
    assert 0.997 * exact < probability_of_half(canaries) <= exact


def test_the_record_with_the_highest_score_is_guessed_where_the_second_one_is_far() -> None:
    scores = np.array([0.0, 9.0, 5.0, 4.0, 1.0, 3.0])
    made = guess_candidates(scores, 2, 2)
    assert made.inside.tolist() == [5, 1]
    assert made.correct(np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])) == 1
    assert guess_candidates(scores, 1, 3).inside.tolist() == [1]
    tied = guess_candidates(np.zeros(4000), 2000, 2).inside % 2
    assert 850 < tied.sum() < 1150, "ties are broken at random"


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (
            lambda: check_one_included(np.array([1.0, 0.0, 1.0]), 2),
            "Expected sets of 2 consecutive rows, got 3",
        ),
        (
            lambda: check_one_included(np.array([1.0, 0.0, 1.0, 1.0]), 2),
            "Expected one included record in each set of 2 consecutive rows, got 2 in rows 3 to 4.",
        ),
        (
            lambda: check_half_included(np.array([1.0, 0.0, 1.0, 1.0])),
            "Expected exactly half of the canaries to be included, got 3 of 4.",
        ),
        (lambda: check_half_included(np.array([0.5])), "Expected inclusion bits 0 or 1, got 0.5 in row 1."),
        (
            lambda: guess_candidates(np.zeros(4), 3, 2),
            "Expected guesses <= sets of records, got guesses=3, sets=2.",
        ),
    ],
)
def test_inclusion_that_contradicts_the_design_is_refused(check: Callable[[], object], sentence: str) -> None:
    with pytest.raises(DomainError) as refused:
        check()
    assert str(refused.value).startswith(sentence)
