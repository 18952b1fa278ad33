"""Training runs as training code performs them: samplers, several epochs, phases, and groups of examples."""

from privcore.training.notation import phase_named, phases, written
from privcore.training.numbers import RunProfile, run_profile
from privcore.training.phase import RELATIONS, Phase
from privcore.training.phases import PHASES
from privcore.training.sizes import (
    ANY_STEPS,
    MORE_STEPS,
    SIZES,
    TrainingRun,
    clash,
    from_sizes,
    sampler_of,
    with_steps,
)

__all__ = [
    "ANY_STEPS",
    "MORE_STEPS",
    "PHASES",
    "RELATIONS",
    "SIZES",
    "Phase",
    "RunProfile",
    "TrainingRun",
    "clash",
    "from_sizes",
    "phase_named",
    "phases",
    "run_profile",
    "sampler_of",
    "with_steps",
    "written",
]
