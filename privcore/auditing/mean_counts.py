"""Mean number of correct guesses about independent Gaussian canaries, for exactly as many guesses."""

from privcore.auditing.halves import one_sided_error_rates
from privcore.auditing.optimal import error_rates, expected_correct
from privcore.numerics.beta_rule import beta_rule
from privcore.numerics.sums import dot


def mean_correct(canaries: int, guesses: int, mu: float) -> float:
    """Return the mean number of correct guesses about exactly c' canaries, those with the clearest scores.

    It is c' times the mean of one minus the error rate beyond the clearest score without a guess, whose share
    of clearer scores is a beta variable, as in `few_errors`. It is a little below `expected_correct`, in
    which c' is the mean of a random number of guesses.

    Args:
        canaries: Number m of canaries.
        guesses: Number c' of guesses, >= 1.
        mu: As for `thresholds`, >= 0.

    Example:
        >>> round(mean_correct(100, 24, 1.0), 3), round(expected_correct(100, 24, 1.0), 3)
        (20.531, 20.572)
    """
    if guesses == canaries:
        return expected_correct(canaries, guesses, mu)
    beyond, weights = beta_rule(guesses + 1.0, float(canaries - guesses))
    return guesses * (1.0 - float(dot(weights, error_rates(mu, beyond))))


def mean_correct_of_halves(canaries: int, guesses: int, mu: float) -> float:
    """Return the mean number of correct guesses if half of them are in and half out.

    Given the highest score without a guess of in, the c'/2 higher ones are independent, and the share of
    higher scores is a beta variable. The guesses of out are symmetric. The mean is precise to 1e-3: for a
    large mu the error rate has a kink where the share is 1/2.

    Args:
        canaries: Number m of independent Gaussian canaries.
        guesses: Number c' of guesses, even, from 2 to m.
        mu: As for `one_sided_error_rates`.

    Example:
        >>> round(mean_correct_of_halves(100, 24, 1.0), 3)
        20.476
    """
    half = guesses // 2
    shares, weights = beta_rule(half + 1.0, float(canaries - half))
    return guesses * (1.0 - float(dot(weights, one_sided_error_rates(mu, shares))))
