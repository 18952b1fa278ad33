"""Running a sweep: plan, run, progress, repair, and the forecast for a cluster."""
