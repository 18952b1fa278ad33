"""The figures of the paper, one entry each, by their numbers in the paper."""

from flows.figures.auditing import alternatives, confidence, guesses, training_free
from flows.figures.figure import Figure

FIGURES: tuple[Figure, ...] = (
    Figure(
        name="audits1",
        title="Epsilon refuted by audits of Gaussian noise, each with its best number of guesses",
        panels=guesses.with_the_best_number,
        sweeps=("audits-guesses",),
    ),
    Figure(
        name="audits2",
        title="Audits of DP-SGD with 5000 canaries (stand-in for CIFAR-10, without training)",
        panels=training_free.panels,
        sweeps=("audits-training-free",),
    ),
    Figure(
        name="audits3",
        title="Audits by reconstruction, Gaussian noise 0.6",
        panels=alternatives.panels,
        sweeps=("audits-alternatives",),
    ),
    *(
        Figure(
            name=f"audits{figure}",
            title=rf"Audits with $10^7$ canaries, Gaussian noise {noise:g}, by the number of guesses",
            panels=guesses.by_number(noise),
            sweeps=("audits-guesses",),
            wants=guesses.at(noise),
        )
        for figure, noise in ((4, 1.0), (5, 2.0), (6, 4.0), (7, 0.5))
    ),
    Figure(
        name="audits8",
        title="1429 of 1500 guesses correct, $10^5$ canaries: epsilon by delta and confidence",
        panels=confidence.of("auditing.steinke"),
        sweeps=("audits-confidence",),
    ),
    Figure(
        name="audits9",
        title="1429 of 1500 guesses correct, $10^5$ canaries: epsilon by delta and confidence",
        panels=confidence.of("auditing.gaussian", "auditing.approximate"),
        sweeps=("audits-confidence",),
    ),
)
