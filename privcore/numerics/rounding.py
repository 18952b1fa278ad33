r"""Outward slacks: how far a computed bound is moved to its safe side, each with its reason.

Beside every slack stands one of two reasons. *Counted*: the operations are counted, each of which errs by
at most a factor of 1 + u with the unit roundoff u, n in a row by $n u / (1 - n u)$ (Higham, Accuracy and
Stability of Numerical Algorithms, 2nd ed., Lemma 3.1); elementary functions count as 2 u where the manual of
the GNU C library documents one unit in the last place, as 4 u elsewhere. *Checked*: the tests of this module
enclose the true value in ball arithmetic, at the ends of the domain and at many points inside, and find the
computed one within the slack.
"""

UNIT = 2.0**-53
"""Counted: the unit roundoff u of doubles; what is moved by a multiple of it has its count beside it."""

# ------------------------------------------------------------------------------------------- counted

EXPRESSION = 2.0**-49
"""Counted: 16 u next to the sum of the sizes of the terms, for Renyi moments. A term has at most two
functions and four operations behind it; `gammaln` of whole numbers to 1024, which enters, is checked to
err by 4 u."""

NOISE_BRACKET = 2.0**-50
"""Counted: 8 u for 3 operations, the square root of the steps, the product or quotient, and the move."""

SHORT_FORMULA = 2.0**-48
"""Counted: 32 u. The error of a mean has at most 8 operations, and its crossing 10; those of the
decomposition into Poisson sampling have at most 3 functions and 6 operations, none of which cancels. Also
checked."""

SUBNORMAL = 2e-323
"""Counted: four of the smallest doubles; the formulas of the error of a mean have at most three products or
quotients below the normal range, each of which loses half of such a number."""

TRUNCATED_RATE = 2.0**-40
"""Counted: 8192 u. The rates of truncated Poisson sampling have about ten operations; 1 - gamma and t - a
cancel, but gamma and a are moved by this slack before, and their subtraction errs by u."""

FEW_OPERATIONS = 1e-15
"""Counted: 9 u, what 1 moved by it leaves below, for formulas of at most 6 operations with positive terms;
the shares of one record have 5, an accuracy 6, sums of
two terms 3. Also checked."""

MOVED_EPSILON = 1e-15
"""Counted: 9 u of epsilon, which covers the 4 u of the logarithm of the odds that it is compared with: where
the two cancel, the odds are at most exp(2 epsilon), and for those the move is twice as large. Also
checked."""

ERROR_FUNCTION = 2e-15
"""Counted: 18 u for `math.erf` of a quotient of a root. Its argument has 2 operations, and since erf is
concave on positive numbers it errs by no larger a factor; the function and the move are 5 u more. Also
checked."""

FEW_FUNCTIONS = 1e-14
"""Counted: 90 u, relative or next to a logarithm, for at most two elementary functions and four operations,
none of which magnifies an error: the logarithm of a confidence within `expm1`, whose relative condition is
below 1 on negative numbers, and the logarithm of a difference over a bound. At most 12 u."""

SAMPLE_SUMS = 1e-9
"""Counted: the means of at most 1e9 samples are sums of blocks of at least 2^16, pairwise within, in 2e4
operations (2e-12); the samples themselves err by less than the rest."""

MEAN_AT_INFINITY = 1e-12
"""Counted: 9000 u for at most 10 u. What two distributions have at infinity is a sum of weighted terms, or
a + b - a b with both at most 1, hence at least half of a + b; and a term is added. The rounding of that term
is a part of the error of the masses."""

RECORD_ATOMS = 1e-12
"""Counted: 9000 u. The probability of an atom errs by at most 1e-14 (90 u), and the number of records times
it by u. At which place the atoms of a Zipf law become smaller is a power of one: its base errs by at most
20 u, its exponent, below 1, by u, which counts for each of at most 745 nats, and 5 u are its own."""

# ------------------------------------------------------------------------- checked: special functions

NORMAL_QUANTILES = 1e-12
"""Checked: error of the difference of two normal quantiles, relative and absolute, for probabilities from
1e-300 to the largest double below 1."""

EXPONENTIAL_REST = 4e-12
"""Checked: relative error of e^y - 1 - y, and of the polynomial above it for |y| < 1e-3, with y the product
of a tilt and the difference of two doubles, for |y| from 1e-150 to 700; the difference loses 2 / |y|."""

GAUSSIAN_SIGMA = 2.0**-50
"""Counted: 8 u of sigma for 4 u in it, and 3 operations on the way to the arguments of the normal
distribution function: a move by r moves a = epsilon sigma - 1 / (2 sigma) by r times the sum of its
terms."""

GAUSSIAN_LOG_DELTA = 1e-14
"""Checked: error of the logarithm of the Gaussian profile next to max(1, its size), with sigma exact, for
sigma in [1e-8, 1e14] and epsilon in [-100, 1e4]. It is the error of erfcx, log_ndtr and Gauss
quadrature."""

LOG_EXCEEDANCE = 4e-14
"""Checked: error of the logarithm of -ln P(all outputs below a threshold), and of what is read from it, next
to max(1, its size), for thresholds and means to 2000 and counts to 1e15; log_ndtr and 34 operations."""

BINOMIAL_WINDOW = 1e-10
"""Checked: relative error of binomial probabilities from products of ratios, to 1e9 trials and p >= 1/2; half
as much again for smaller p at 36 standard deviations. Those who use it for such p take twice as much and
more."""

BINOMIAL_TERM = 1e-12
"""Checked: relative error of Loader's form of a binomial probability to 1e12 trials, beside a term that grows
with the distance from the mean; and of binomial tails where the variance is at least 490, likewise.
Tails of a smaller variance are summed term by term beyond 1e5 trials."""

INCOMPLETE_BETA = 1e-7
"""Checked: absolute error of the regularised incomplete beta function to 1e9 trials."""

CLONE_COUNTS = 1e-9
"""Checked: relative error of `scipy.stats.binom`: pmf and sf at 1/2 to 1e9 trials; and cdf, next to 2^-51 for
every trial, since 1 - g is rounded before its power is taken."""

MAJORITY_TAILS = 1e-12
"""Checked: error of a difference of binomial tails at 1/2 and near it, absolute and relative, beside 1e-16
for the square root of the trials, to 1e12 trials."""

BESSEL_RATIO = 1e-9
"""Checked: error of the logarithm of the likelihood ratio of least squares, hence of a gain, for 2 to 1e12
records; the uniform expansion of Bessel functions errs by 2e-10 at order 40, where it begins."""

# --------------------------------------------------------------------------- checked: whole formulas

CLOSED_FORM = 1e-12
"""Checked: relative error of closed forms about learners: an error function, a mean norm, Pinsker's
inequality, the mean deviation of a count and its two published constants. The information of a channel
cancels by a factor of 2000; it errs by at most 20000 u, and the advantage, which grows as its square root, is
moved by three times as much."""

PRIVATE_ADVANTAGE = 1e-14
"""Checked: relative error of the advantage under differential privacy, for epsilon to 700 and odds in
[1e-6, 1e6]. The published bound may cancel; it has 1e-16 besides, and the truth is smaller where it does."""

SPLIT_SAMPLE = 1e-11
"""Checked: relative error of the mean distance of the parts of a sample, three binomial probabilities a
term."""

LOSS_RATES = 1e-12
"""Checked: error of the advantage of a threshold at given nodes, next to the sum of its terms, for thresholds
to 20 deviations; beyond, it grows with their square."""

LABEL_BOUND = 1e-11
"""Checked: relative error of explicit bounds on label inference: powers and exponents of at most 745, whose
own error counts in full, and sums over a bag of at most 1e6, pairwise."""

RESPONSE = 8.0 * UNIT
"""Checked: relative error of the logistic function at both signs of an epsilon in (0, 700]."""

AUDIT_SEARCH = 2e-10
"""Checked: relative move of an audited parameter, or of a p-value, after which Algorithm 3 agrees in ball
arithmetic; searches end at 1e-13, and steps that grow by rounding alone refute less."""

PRIVATE_RESPONSES = 1e-12
"""Checked: relative move of the probability of a correct response, after which random responses that are
found to be as private as is claimed are so in ball arithmetic; for epsilon and mu to 30, and while a
wrong response has a probability above 1e-300."""

PROGRAMME = 1e-10
"""Checked: relative error of the bound that the multipliers of a solved programme prove, beside an absolute
one, for up to 500 guesses; its sums have one term for every point of the profile."""

PROGRAMME_OFFSET = 1e-12
"""Checked: absolute error of that bound."""

EXPECTED_GUESSES = 1e-10
"""Checked: relative error of the cap on correct guesses and of the two attacks; the normal quantile and the
trapezoidal rule are good to 1e-13."""

SUMMED_SCORES = 1e-9
"""Counted: ten times `BINOMIAL_WINDOW`, since participations of less than 1e-25 are left out and the normal
distribution function adds 1e-12 where it counts."""


def probability_at_most(x: float, relative: float, absolute: float = 0.0) -> float:
    """Return an upper end of a probability, moved outward and at most 1.

    Example:
        >>> probability_at_most(0.5, 1e-3), probability_at_most(1.0, 1e-3)
        (0.5005, 1.0)
    """
    return min(1.0, x * (1.0 + relative) + absolute)
