"""Training runs as training code performs them: samplers, several epochs, phases, and groups of examples."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privcore.training.sizes import (
    ANY_STEPS,
    FEWER_STEPS,
    MORE_STEPS,
    SIZES,
    TrainingRun,
    clash,
    from_sizes,
    sampler_of,
    with_steps,
)

if TYPE_CHECKING:
    from privcore.training.notation import PHASES, phase_named, phases, written
    from privcore.training.numbers import ProfileLine, RunProfile, run_profile
    from privcore.training.phase import RELATIONS, Phase
else:
    _HOMES = {
        "PHASES": "notation",
        "RELATIONS": "phase",
        "Phase": "phase",
        "ProfileLine": "numbers",
        "RunProfile": "numbers",
        "phase_named": "notation",
        "phases": "notation",
        "run_profile": "numbers",
        "written": "notation",
    }

    def __getattr__(name: str) -> Any:
        """Import the numerics on first use, because sizes of batches are needed without them."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


__all__ = [
    "ANY_STEPS",
    "FEWER_STEPS",
    "MORE_STEPS",
    "PHASES",
    "RELATIONS",
    "SIZES",
    "Phase",
    "ProfileLine",
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
