"""Loaders of training code, by the sampler that each of them is, and the error about a missing sampler."""

from privcore.errors import ChoiceError

LOADERS = {
    "shuffling": "DataLoader(shuffle=True); tf.data shuffle(n).batch(b)",
    "poisson": "Opacus make_private(poisson_sampling=True), its default",
    "with-replacement": "DataLoader(sampler=RandomSampler(replacement=True))",
    "fixed-size": "random.sample(data, b) in every step",
    "balls-in-bins": "jax_privacy BallsInBinsSampling",
    "allocation": "jax_privacy RandomAllocationSampling: k random steps",
    "truncated-poisson": "jax_privacy CyclicPoissonSampling(truncated_batch_size=B)",
    "none": "DataLoader(shuffle=False), or a shuffle buffer below n",
}
"""Samplers by the words of `--sampling`, each with code that has it; docs/training-runs.md has more."""

UNKNOWN = "unknown"
"""Word of `--sampling` for all samplers that `privsweep compare` lists."""


def loader(sampling: str) -> str:
    """Return a sampler with the code of a loader that has it."""
    return f"{sampling}: {LOADERS[sampling]}"


def sampling_error(sampling: object) -> ChoiceError:
    """Return the error about a missing or unknown sampler, with a line for each sampler.

    Args:
        sampling: The word that was given, or None.
    """
    what = f"--sampling with one of these words, got {str(sampling)[:50]!r}"
    if sampling is None:
        what = "--sampling, since the answer depends on the loader"
    lines = LOADERS | {UNKNOWN: "worst of all that `privsweep compare` lists"}
    return ChoiceError(
        f"Expected {what}:",
        [f"{word:<17}  {code}" for word, code in lines.items()],
    )
