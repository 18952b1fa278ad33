"""Proofs that the true values of this topic are monotone in their parameters, in one sentence each."""

PROFILE = "The privacy profile is non-increasing in epsilon; its inverse is non-increasing in delta."
CONVEX = (
    "The profile is the supremum of P(S) - e^epsilon Q(S) over neighbours and events, so it is convex in "
    "e^epsilon; so e^epsilon is convex in delta, below its chords and above their extensions."
)
MORE_NOISE = (
    "Adding independent Gaussian noise to the outputs is post-processing, so no divergence grows with the "
    "noise."
)
MORE_LAPLACE = (
    "Laplace noise of scale b' > b is Laplace noise of scale b plus an independent variable: 0 with "
    "probability (b/b')^2, otherwise Laplace of scale b', as the characteristic functions show. So "
    "adding noise is post-processing, and epsilon and delta never grow with the scale."
)
MORE_FLIPS = "Flipping the answer once more gives the randomized response of any smaller epsilon."
MORE_LEAKS = (
    "Hiding the truth where it leaks, with a probability, gives the randomized response of any smaller "
    "local_delta: its pair has all pairs of this epsilon and local_delta as post-processings."
)
SPREAD = (
    "The likelihood ratio is a U-statistic of t i.i.d. one-step ratios (arXiv:2502.08202v3, Theorem 3.1), a "
    "reverse martingale in t (Berk 1966), so it decreases in convex order as t grows; products of "
    "independent ratios preserve the order."
)
NESTED = (
    "In every epoch, allocation to k of t steps is dominated by allocation to k' of t steps for k <= k' "
    "(arXiv:2502.08202v3, Lemma D.1)."
)
LARGER_ORDER = (
    "The Renyi divergence never falls as the order grows (van Erven and Harremoes 2014, arXiv:1206.2459, "
    "Theorem 3)."
)
PUBLIC = "The steps that use an example are public, so the number of other steps makes no difference."
COMPOSED = "Leaving out the outputs of an epoch is post-processing."
STEPS_COMPOSED = (
    "All steps of all epochs are independent and alike, so only their number matters; leaving out the output "
    "of a step is post-processing."
)
USES_COMPOSED = (
    "All steps that use the example are Gaussian steps of the same noise, so only their number in all epochs "
    "matters; leaving out the output of a step is post-processing."
)
SAMPLED = (
    "Sampling with a smaller probability is a subsample of sampling with a larger one; every factor of the "
    "likelihood ratio becomes more private in both directions."
)
