"""Training runs as training code performs them: samplers, several epochs, phases, and groups of examples."""

from privcore.training.notation import phase_named, phases, written
from privcore.training.numbers import RunProfile, run_profile
from privcore.training.phase import RELATIONS, Phase
from privcore.training.phases import PHASES

__all__ = [
    "PHASES",
    "RELATIONS",
    "Phase",
    "RunProfile",
    "phase_named",
    "phases",
    "run_profile",
    "written",
]
