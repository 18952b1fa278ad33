"""Training runs as training code performs them: samplers, several epochs, phases, and groups of examples."""
