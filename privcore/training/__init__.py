"""Training runs as training code performs them: samplers, several epochs, phases, and groups of examples."""

from privcore.training.notation import phase_named, phases, written
from privcore.training.numbers import RunProfile, run_profile
from privcore.training.phase import Phase
from privcore.training.phases import PHASES
from privcore.training.sizes import MORE_STEPS, SIZES, TrainingRun, from_sizes, sampler_of, with_steps

__all__ = [
    "MORE_STEPS",
    "PHASES",
    "SIZES",
    "Phase",
    "RunProfile",
    "TrainingRun",
    "from_sizes",
    "phase_named",
    "phases",
    "run_profile",
    "sampler_of",
    "with_steps",
    "written",
]
