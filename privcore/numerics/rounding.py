r"""Outward slacks, by which computed bounds are moved to their safe sides, each with its reason.

Every slack has one of two reasons. *Counted*: each operation errs by at most a factor of 1 + u, with the unit
roundoff u, and n operations in a row by $n u / (1 - n u)$ (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed., Lemma 3.1). Elementary functions count as 2 u if the manual of the GNU C library
documents one unit in the last place, otherwise as 4 u. *Checked*: the tests of this module enclose the true
value in ball arithmetic, at the ends of the domain and at many points inside, and find the computed value
within the slack.
"""

UNIT = 2.0**-53
"""Counted: the unit roundoff u of doubles; every use of a multiple of it states the count."""

# ------------------------------------------------------------------------------------------- counted

EXPRESSION = 2.0**-49
"""Counted: 16 u relative to the sum of the sizes of the terms, for Renyi moments. A term takes at most two
functions and four operations; `gammaln` of whole numbers up to 1024 is one of the functions, and is checked
to err by 4 u."""

NOISE_BRACKET = 2.0**-50
"""Counted: 8 u for 3 operations: the square root of the steps, the product or quotient, and the move."""

SHORT_FORMULA = 2.0**-48
"""Counted: 32 u. The error of a mean takes at most 8 operations, and the crossing dimension 10; the formulas
of the decomposition into Poisson sampling take at most 3 functions and 6 operations without cancellation, and
the probability of half of the canaries one function and 6 operations. Also checked."""

SUBNORMAL = 2e-323
"""Counted: four times the smallest double; the formulas of the error of a mean have at most three products or
quotients below the normal range, and each errs by at most half of the smallest double."""

TRUNCATED_RATE = 2.0**-40
"""Counted: 8192 u. The rates of truncated Poisson sampling take about ten operations; 1 - gamma and t - a
cancel, but gamma and a are moved by this slack before the subtraction, which errs by u."""

PROFILE_CHORD = 2.0**-40
"""Counted: 8192 u, relative, twice for a chord of the privacy profile. The series of e^x - 1 takes 40 steps
of 3 operations on positive numbers (120 u), and the quotients and products take 8 more; that of the
logarithm takes 40 steps of 4 operations (160 u), and is a polynomial of degree 79 of a quotient that errs by
2 u (160 u). Compared with 80 digits in the tests of the chord."""

FEW_OPERATIONS = 1e-15
"""Counted: 9 u, since 1 - 1e-15 is 1 - 9 u in doubles, for formulas of at most 6 operations with positive
terms; the shares of one record take 5 operations, an accuracy 6, sums of two terms 3. Also checked."""

MOVED_EPSILON = 1e-15
"""Counted: 9 u of epsilon, which covers the 4 u of the logarithm of the odds that is compared with epsilon.
If the two cancel, the odds are at most exp(2 epsilon), and for such odds the move is twice as large. Also
checked."""

ERROR_FUNCTION = 2e-15
"""Counted: 18 u for `math.erf` of a quotient of a root. Its argument takes 2 operations; erf is concave on
positive numbers, so the relative error does not grow. The function and the move add 5 u. Also checked."""

FEW_FUNCTIONS = 1e-14
"""Counted: 90 u, relative, or absolute for a logarithm, for at most two elementary functions and four
operations that do not magnify errors: the logarithm of a confidence inside `expm1`, whose relative condition
number is below 1 on negative numbers, the logarithm of a difference divided by a bound, a difference of a
number and a logistic function or a hyperbolic tangent (relative to the sum of both), and 1 - (1 - p)^n by
`expm1` and `log1p`. The error is at most 12 u."""

SAMPLE_SUMS = 1e-9
"""Counted: the means of at most 1e9 samples are sums of blocks of at least 2^16 samples, with pairwise sums
inside a block: 2e4 operations (2e-12). The samples themselves err by less than the rest of the slack."""

MEAN_AT_INFINITY = 1e-12
"""Counted: 9000 u for at most 10 u. The mass at infinity of two distributions is a sum of weighted terms, or
a + b - a b with both at most 1 and so at least half of a + b; and a term is added, whose rounding is part of
the error of the masses."""

RECORD_ATOMS = 1e-12
"""Counted: 9000 u. The probability of an atom errs by at most 1e-14 (90 u), and its product with the number
of records by u. The place from which the atoms of a Zipf distribution are smaller is a power of a
probability. Its base errs by at most 20 u; its exponent is below 1 and errs by u, for each of at most 745
nats; the power itself errs by 5 u."""

FOURIER = 2.0**-49
"""Counted: 16 u for each halving of a fast Fourier transform, relative to the sum of the sizes of its terms.
A halving takes one product with a root of unity (3 u, and 1 u for the root) and one addition (1.5 u). Also
checked."""

SUMMED = 1e-9
"""Counted: 1e7 u, for sums of up to 2^18 terms of one sign, and exponentials of numbers whose rounding is
counted separately."""

# ------------------------------------------------------------------------- checked: special functions

SCALED_BESSEL = 1e-12
"""Checked: relative error of e^-V I_0(V) for V from 0 to 1e6."""

NORMAL_QUANTILES = 1e-12
"""Checked: relative and absolute error of the difference of two normal quantiles, for probabilities from
1e-300 to the largest double below 1."""

EXPONENTIAL_REST = 4e-12
"""Checked: relative error of e^y - 1 - y, and of the polynomial above it for |y| < 1e-3, with y the product
of a tilt and the difference of two doubles, for |y| from 1e-150 to 700; the difference loses 2 / |y|."""

GAUSSIAN_SIGMA = 2.0**-50
"""Counted: 8 u of sigma, for an error of 4 u of sigma and 3 operations for the arguments of the normal
distribution function: moving sigma by the factor 1 + r moves a = epsilon sigma - 1 / (2 sigma) by r times the
sum of the sizes of its terms."""

GAUSSIAN_LOG_DELTA = 1e-14
"""Checked: error of the logarithm of the Gaussian profile relative to max(1, its size), with exact sigma, for
sigma in [1e-8, 1e14] and epsilon in [-100, 1e4]. The error comes from erfcx, log_ndtr and Gauss
quadrature."""

GAUSSIAN_RATE = 2.0**-50
"""Checked: 8 u, relative error of the normal distribution function at a normal quantile plus a shift, after a
move of the argument by `NORMAL_QUANTILES` times 1 plus the sizes of both terms."""

LOG_EXCEEDANCE = 4e-14
"""Checked: error of the logarithm of -ln P(all outputs below a threshold), and of values computed from it,
relative to max(1, its size), for thresholds and means up to 2000 and counts up to 1e15; log_ndtr and 34
operations."""

BINOMIAL_WINDOW = 1e-10
"""Checked: relative error of binomial probabilities from products of ratios, for up to 1e9 trials and p >=
1/2. For smaller p the error is up to 1.5 times as large at 36 standard deviations, and uses for smaller p
take at least twice this slack."""

DEVIANCE = 16.0 * UNIT
"""Counted: error of half the deviance of a binomial count, relative to 1 plus the distance of the count from
its mean over the variance of a trial; two logarithms, and a distance whose error cancels in first order."""

BINOMIAL_TERM = 1e-12
"""Checked: relative error of Loader's form of a binomial probability up to 1e12 trials, in addition to a term
that grows with the distance from the mean; and of binomial tails with a variance of at least 490, with the
same term. Beyond 5000 trials, tails with a smaller variance are summed term by term."""

INCOMPLETE_BETA = 1e-7
"""Checked: absolute error of the regularised incomplete beta function up to 1e9 trials."""

CLONE_COUNTS = 1e-9
"""Checked: relative error of `scipy.stats.binom`: pmf and sf at 1/2 up to 1e9 trials; and cdf, in addition to
2^-51 per trial, since 1 - g is rounded before its power is taken."""

MAJORITY_TAILS = 1e-12
"""Checked: absolute and relative error of a difference of binomial tails at 1/2 and near it, in addition to
1e-16 times the square root of the number of trials, up to 1e12 trials."""

BESSEL_RATIO = 1e-9
"""Checked: error of the logarithm of the likelihood ratio of least squares, and so of a gain, for 2 to 1e12
records; the uniform expansion of Bessel functions errs by 2e-10 at order 40, the first for which it is
used."""

# --------------------------------------------------------------------------- checked: whole formulas

CLOSED_FORM = 1e-12
"""Checked: relative error of closed forms about learners: an error function, a mean norm, Pinsker's
inequality, the mean deviation of a count and its two published constants. The information of a channel loses
a factor of 2000 to cancellation and errs by at most 20000 u; the advantage, which grows as its square root,
is moved by three times as much. Numbers about a distribution, numbers of records and spherical caps take at
most 20 operations, and powers with exponents of at most 745 nats: at most 3000 u, counted."""

PRIVATE_ADVANTAGE = 1e-14
"""Checked: relative error of the advantage under differential privacy, for epsilon up to 700 and odds in
[1e-6, 1e6]. The published bound may cancel; it is moved by another 1e-16, and if it cancels the true
advantage is smaller."""

SPLIT_SAMPLE = 1e-11
"""Checked: relative error of the mean distance of the parts of a sample, with three binomial probabilities
per term."""

LOSS_RATES = 1e-12
"""Checked: error of the advantage of a threshold at given nodes, relative to the sum of its terms, for
thresholds up to 20 standard deviations; beyond, the error grows with their square."""

LABEL_BOUND = 1e-11
"""Checked: relative error of explicit bounds on label inference: powers with exponents of at most 745, whose
absolute error counts in full, and pairwise sums over a bag of at most 1e6 examples."""

RESPONSE = 8.0 * UNIT
"""Checked: relative error of the logistic function at both signs of an epsilon in (0, 700]."""

AUDIT_SEARCH = 2e-10
"""Checked: relative move of an audited parameter, or of a p-value, after which Algorithm 3 agrees in ball
arithmetic. Searches end at 1e-13; if rounding makes a step grow, less is refuted."""

PRIVATE_RESPONSES = 1e-12
"""Checked: relative move of the probability of a correct response, after which random responses that are
accepted as private have the claimed privacy in ball arithmetic; for epsilon and mu up to 30, if a wrong
response has a probability above 1e-300."""

PROGRAMME = 1e-10
"""Checked: relative error of the bound from the multipliers of a solved linear programme, in addition to
`PROGRAMME_OFFSET`, for up to 500 guesses; its sums have one term for every point of the profile."""

PROGRAMME_OFFSET = 1e-12
"""Checked: absolute error of the bound from the multipliers of a solved linear programme."""

HALF_GUESSES = 1e-9
"""Checked: absolute error of the probability of few errors in guesses of half in and half out, for up to
10,000 guesses; binomial probabilities from logarithms of gamma functions err by 1e-11."""

BETTED_WEALTH = 1e-7
"""Counted: absolute and relative error of the logarithm of a wealth of up to 1e7 bets; each logarithm errs by
two roundings of at most 5, and the pairwise sum by 30 more."""

ERROR_RATES = 1e-6
"""Counted: relative error of binomial tails and divergences in intervals of error rates, and absolute error
of their ends; the incomplete beta function errs by up to 3e-8 beyond a hundred thousand scores."""

PARTS_OF_BAGS = 1e-12
"""Counted: relative error of a sum of the tails of at most 64 parts of bags, and of an end that is scaled; a
term takes three operations."""

EXPECTED_GUESSES = 1e-10
"""Checked: relative error of the cap on correct guesses and of the two attacks; the normal quantile and the
trapezoidal rule err by 1e-13."""

SUMMED_SCORES = 1e-9
"""Counted: ten times `BINOMIAL_WINDOW`, since participations of probability below 1e-25 are left out and the
normal distribution function adds up to 1e-12."""


def probability_at_most(x: float, relative: float, absolute: float = 0.0) -> float:
    """Return an upper bound of a probability, moved outward and at most 1.

    Example:
        >>> probability_at_most(0.5, 1e-3), probability_at_most(1.0, 1e-3)
        (0.5005, 1.0)
    """
    return min(1.0, x * (1.0 + relative) + absolute)
