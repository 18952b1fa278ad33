"""Parameters of audits, each declared once, as in `params`."""

from dataclasses import replace

from privcore.parameter import Choice, Integer, Real
from privcore.params import DELTA_MEANING

CANARIES = Integer(
    name="canaries",
    symbol="m",
    unit="canaries",
    lower=1,
    upper=10**9,
    typical=(100, 1000, 100_000),
    meaning=(
        "Number of canaries whose inclusion was randomised, including those without a guess; a pair, or a "
        "set of candidate records, counts once"
    ),
)
DESIGN = Choice(
    name="design",
    symbol="-",
    choices=("independent", "exactly-half", "pairs"),
    meaning=(
        "Design of the audit: every canary drawn on its own, in or out by a fair coin or, with more than two "
        "alternatives, one of these candidate records; exactly half of the canaries, drawn uniformly; or "
        "one record of each pair, by a fair coin"
    ),
)
GUESSES = Integer(
    name="guesses",
    symbol="c'",
    unit="canaries",
    lower=0,
    upper=10**9,
    typical=(10, 50, 100),
    meaning="Largest number of canaries about which the auditor guesses, fixed before the run",
)
PLANNED_GUESSES = replace(
    GUESSES,
    meaning="Number of canaries about which the auditor guesses: exactly, or expected, as guess_number says",
)
GUESS_NUMBER = Choice(
    name="guess_number",
    symbol="-",
    choices=("random", "fixed"),
    meaning=(
        "Whether the number of guesses is random (thresholds of the scores are fixed, beyond which guesses "
        "is the expected number of canaries) or fixed before the run (exactly this many canaries, those with "
        "the most extreme scores)"
    ),
)
CORRECT = Integer(
    name="correct",
    symbol="c",
    unit="canaries",
    lower=0,
    upper=10**9,
    typical=(5, 10, 40, 90),
    meaning="Number of correct guesses",
)
ALTERNATIVES = Integer(
    name="alternatives",
    symbol="k",
    lower=2,
    upper=10**6,
    typical=(2, 2, 10),
    meaning=(
        "Number of alternatives for each canary: 2 for in or out, or for the records of a pair; otherwise "
        "the number of candidate records"
    ),
)
MU = Real(
    name="mu",
    symbol=r"\mu",
    lower=0.0,
    upper=30.0,
    typical=(0.25, 0.5, 1.0, 2.0),
    meaning=(
        "Mu of Gaussian differential privacy: neighbours are at least as hard to distinguish as N(0, 1) and "
        "N(mu, 1)"
    ),
)
AUDIT_DELTA = Real(
    name="delta",
    symbol=r"\delta",
    lower=0.0,
    upper=1.0,
    upper_open=True,
    typical=(1e-10, 1e-8, 1e-6, 1e-4, 1e-2),
    meaning=f"{DELTA_MEANING}; 0 means pure differential privacy",
)
PROFILE_POINTS = Integer(
    name="profile_points",
    symbol="-",
    lower=2,
    upper=1000,
    typical=(20, 40),
    meaning="Number of points of the privacy profile in the linear programme",
)
NULL_FAMILY = Choice(
    name="family",
    symbol="f",
    choices=("approximate", "gaussian"),
    meaning="Refuted claim: (epsilon, delta)-DP of any mechanism, or Gaussian differential privacy",
)
GUESSING = Choice(
    name="guessing",
    symbol="-",
    choices=("clearest", "halves"),
    meaning=(
        "Canaries with a guess: those with scores farthest from the middle between in and out, or as many "
        "with the highest as with the lowest scores"
    ),
)
REFUTATION = Choice(
    name="refutation",
    symbol="-",
    choices=("published", "programmed"),
    meaning=(
        "Bounds of the probability of the count: those that are published, or the best ones: the exact "
        "probability, in the Gaussian family along the privacy curve, and there also the linear programme, "
        "for up to 500 guesses"
    ),
)
BUG = Choice(
    name="bug",
    symbol="-",
    choices=("none", "noise-halved", "noise-unscaled", "clip-after-averaging", "rate-doubled"),
    meaning=(
        "Bug planted in the training: none, half the noise, noise without the clip norm as a factor, "
        "clipping of the mean instead of the gradients, or batches twice as large as accounted for"
    ),
)
AUDIT_CONFIDENCE = Real(
    name="audit_confidence",
    symbol=r"1 - \tau",
    lower=0.5,
    upper=1.0,
    upper_open=True,
    typical=(0.95, 0.99),
    meaning="Confidence of an audit: one minus the probability that it refutes a true claim",
)
RUN = Integer(
    name="run",
    symbol="-",
    lower=0,
    upper=10**9,
    typical=(0, 1, 2),
    meaning="Index of a repetition; each repetition has its own random numbers",
)
RUNS_WITH = Integer(
    name="runs_with",
    symbol="n_1",
    unit="runs",
    lower=0,
    upper=10**9,
    typical=(20, 500, 1000),
    meaning="Number of independent runs with the canary",
)
TRUE_POSITIVES = Integer(
    name="true_positives",
    symbol="x_1",
    unit="runs",
    lower=0,
    upper=10**9,
    typical=(0, 15, 450),
    meaning="Number of runs with the canary in which the attack says that the canary is in",
)
RUNS_WITHOUT = Integer(
    name="runs_without",
    symbol="n_0",
    unit="runs",
    lower=0,
    upper=10**9,
    typical=(20, 500, 1000),
    meaning="Number of independent runs without the canary",
)
FALSE_POSITIVES = Integer(
    name="false_positives",
    symbol="x_0",
    unit="runs",
    lower=0,
    upper=10**9,
    typical=(0, 3, 20),
    meaning="Number of runs without the canary in which the attack says that the canary is in",
)
