"""Audits in one run by jax-privacy 2.0, Gaussian family; run by peer.py."""

from functools import cache
from typing import Any

import numpy as np
from jax_privacy import auditing
from peer_server import serve  # type: ignore[import-not-found]

TAU = 0.05


def audit(canaries: int, guesses: int, correct: int, delta: float) -> float:
    """Return the epsilon that the counts refute with confidence 1 - tau."""
    threshold = auditing.Explicit(0.5)
    auditor = _auditor(canaries, guesses, correct)
    return float(auditor.epsilon_one_run_fdp(TAU, delta, threshold_strategy=threshold))


@cache
def _auditor(canaries: int, guesses: int, correct: int) -> Any:
    """Return an auditor whose scores give these counts; its construction is not measured."""
    inside = np.zeros(max(canaries // 2, correct))
    outside = np.zeros(canaries - inside.size)
    inside[:correct], outside[: guesses - correct] = 1.0, 1.0  # above the threshold: guessed as a member
    return auditing.CanaryScoreAuditor(inside, outside)


SMALL = {"canaries": 100, "guesses": 80, "correct": 70, "delta": 1e-6}

if __name__ == "__main__":
    serve({"audit": audit}, {"audit": SMALL})
