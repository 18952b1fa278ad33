"""Why the truths of this topic are monotone in their parameters: one sentence a proof, with its source."""

PROFILE = "The privacy profile is non-increasing in epsilon; its inverse is non-increasing in delta."
MORE_NOISE = (
    "Adding independent Gaussian noise to the outputs is post-processing, so more noise is a garbling."
)
MORE_LAPLACE = (
    "Laplace noise of scale b' > b is that of scale b plus an independent variable: 0 with probability "
    "(b/b')^2, else Laplace of scale b', as the characteristic functions show; so more noise is a garbling."
)
MORE_FLIPS = "Flipping the answer once more gives the randomized response of any smaller epsilon."
SPREAD = (
    "The likelihood ratio is a U-statistic of t i.i.d. one-step ratios (arXiv:2502.08202v3, Theorem 3.1), a "
    "reverse martingale in t (Berk 1966), so it falls in convex order, which independent products keep."
)
NESTED = "k of t is dominated by k' of t for k <= k' (arXiv:2502.08202v3, Lemma D.1), in every epoch."
PUBLIC = "The steps that use an example are public, so how many others there are makes no difference."
COMPOSED = "Leaving out the outputs of an epoch is post-processing."
SAMPLED = (
    "A smaller sampling probability is a subsampling of the larger; both directions of every factor decrease."
)
