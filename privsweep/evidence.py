"""Questions from Python about labels, audits and membership inference."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from privsweep.enclosure import Report
from privsweep.words import in_python, spelled_in_python

Number = float | int | str


@in_python
def labels(
    *,
    prior: str,
    bag_size: Number | None = None,
    versus_rr: Number | None = None,
    mechanism: str = "llp",
    label_epsilon: Number = math.inf,
    level: Number = 0.98,
    draw: str | None = None,
) -> Report:
    """Compare bags of labels with randomized response, and find when both reveal the same.

    Args:
        prior: Distribution of eta, the probability of label 1: `uniform`, `beta(2,30)`, `column(FILE,NAME)`.
        bag_size: Number of examples in a bag.
        versus_rr: Epsilon of the randomized response, in nats.
        mechanism: Mechanism of the bags: `llp`, `llp-geometric` or `llp-laplace`.
        label_epsilon: Epsilon of the noise on the sum of a bag, in nats.
        level: Level of the quantile of the log-likelihood ratio.
        draw: Bags of a column: `partition` or `with-replacement`.

    Returns:
        The JSON of `privsweep labels`.

    Raises:
        DomainError: An argument is missing or outside its domain.

    Example:
        >>> round(labels(prior="point(0.5)", bag_size=2)["bags"]["advantage"]["upper"], 6)
        0.25
    """
    words = dict(locals())
    from flows.answers.label_text import print_comparison
    from flows.answers.labels import compared, contents_of

    asked = compared(**words)
    (*_, content) = contents_of(*asked)
    return Report(content, "", partial(print_comparison, content))


@in_python
def audit(  # noqa: PLR0913  the options of the command
    *,
    scores: Any = None,
    scores_out: Any = None,
    roc: Any = None,
    runs: str | Sequence[Number] | None = None,
    score_column: str = "score",
    included_column: str = "included",
    lower_is_member: bool = False,
    guesses: Number | None = None,
    counts: str | Sequence[Number] | None = None,
    delta: Number,
    confidence: Number = 0.95,
    design: str | None = None,
    alternatives: Number | None = None,
    one_sided: bool = False,
    clearest: bool = False,
    centre: Number | None = None,
    claimed_epsilon: Number | None = None,
    claim: str | None = None,
    rates: bool = False,
    threshold: Sequence[Number] = (),
    false_positive_rate: Sequence[Number] = (),
    null_check: Number | None = None,
) -> Report:
    """Compute the epsilon that an audit in one run refutes, for the design by which canaries were included.

    Args:
        scores: File with one row for each canary, or a table in memory, such as a frame or a mapping of
            arrays; with `scores_out`, a file or an array of the scores of included canaries.
        scores_out: File or array of the scores of the canaries that were left out.
        roc: File or table of a ROC curve instead, with the columns `fpr` and `tpr`, whose thresholds were
            fixed beforehand.
        runs: Numbers of training runs with and without the record, for `roc`.
        score_column: Column of scores; a higher score means more likely included.
        included_column: Column of inclusion bits.
        lower_is_member: Whether a lower score means more likely included, as for losses.
        guesses: Number of guesses, fixed before seeing the scores.
        counts: Numbers of canaries, of guesses and of correct guesses, instead of scores.
        delta: Delta at which epsilon is refuted, in [0, 1).
        confidence: Confidence of the refutation.
        design: `independent`, `exactly-half`, `pairs` or `candidates`.
        alternatives: Number of candidate records for each canary.
        one_sided: Whether to guess only that the highest scores are in.
        clearest: Whether to guess about the scores farthest from a centre.
        centre: Centre of `clearest`; the median by default.
        claimed_epsilon: Claimed epsilon, in nats, whose p-value is bounded.
        claim: Claimed mechanism instead, such as `gaussian(sigma=1)` or `guarantee(epsilon=1,delta=1e-5)`.
        rates: Whether to report error rates, for independent scores.
        threshold: Thresholds for `rates`, fixed beforehand.
        false_positive_rate: False positive rates for `rates`.
        null_check: Number of audits to repeat with shuffled inclusion bits.

    Returns:
        The JSON of `privsweep audit`: `refuted_epsilon` has the refuted epsilon of each method.

    Raises:
        DomainError: Arguments contradict one another, or the scores are not valid.

    Example:
        >>> found = audit(counts=(2000, 200, 180), delta=1e-5, design="independent")
        >>> 1.79 < found["refuted_epsilon"]["auditing.steinke"] < 1.8
        True
    """
    words = dict(locals())
    from flows.answers.audits.audit_words import audit_of, show_audit, show_curve

    content = audit_of(**words)
    content |= {"hints": spelled_in_python(content.get("hints", []))}
    return Report(content, "", partial(show_audit if roc is None else show_curve, content))


@in_python
def membership(  # noqa: PLR0913  the options of the command
    *,
    law: str | None = None,
    sample: str | None = None,
    records: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    adjacency: str | None = None,
    bits: Number | None = None,
    information: Number | None = None,
    attack: str | Sequence[Number] | None = None,
    nonmember_share: Number = 0.5,
    member_weight: Number = 1.0,
    confidence: Number = 0.95,
) -> Report:
    """Bound the advantage of every membership inference attack on a learner from given facts.

    Args:
        law: Distribution of a discrete record, such as `zipf(1.2)`.
        sample: Counts of a sample, such as `60,30,10` or `column(FILE,NAME)`.
        records: Number of records in the training set.
        epsilon: Epsilon of the private learner, in nats, with `delta` and `adjacency`.
        delta: Its delta; 0 is pure differential privacy.
        adjacency: Its neighbouring relation: `add-remove` or `replace-one`.
        bits: Number of bits that the learner releases.
        information: Mutual information of the release and one record, in nats.
        attack: True positives, members, false positives and non-members of an attack that was run.
        nonmember_share: Share of non-members among the tested records.
        member_weight: Weight of a member that is found, if a non-member has weight 1.
        confidence: Joint confidence of all bounds from data.

    Returns:
        The JSON of `privsweep membership`: `advantage`, `security` and `accuracy` have both ends, and
        `bounds` the bound from each fact.

    Raises:
        DomainError: Arguments are missing, contradict one another, or are outside their domains.

    Example:
        >>> membership(epsilon=1.0, delta=0.0, adjacency="replace-one")["advantage"]["upper"] < 0.245
        True
    """
    words = dict(locals())
    from flows.answers.membership import sandwich_of, show_sandwich

    content = sandwich_of(**words)
    return Report(content, "bounds", partial(show_sandwich, content))
