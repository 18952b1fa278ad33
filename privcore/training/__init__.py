"""Training runs as training code performs them: samplers, several epochs, phases, and groups of examples."""

from privcore.training.notation import phase_named, phases, written
from privcore.training.phases import PHASES

__all__ = ["PHASES", "phase_named", "phases", "written"]
