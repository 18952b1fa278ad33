"""Parameters of problems and options of methods, declared once: name, domain, typical values, unit, meaning.

These are used by several topics, or outside of any topic; the others are in the `params.py` of their topic.
"""

from privcore.parameter import Integer, Real

DELTA_MEANING = (
    "Delta of (epsilon, delta)-differential privacy: P[M(D) in S] <= e^epsilon P[M(D') in S] + delta for all "
    "events S"
)
"""The definition, in the same words wherever a delta is explained."""

SIGMA = Real(
    name="sigma",
    symbol=r"\sigma",
    unit="clipping norms",
    lower=1e-3,
    upper=1e6,
    typical=(0.3, 0.5, 1.0, 2.0, 10.0),
    meaning=(
        "Noise multiplier: standard deviation of the Gaussian noise of a step divided by the clipping norm, "
        "also for replace-one"
    ),
)
STEPS = Integer(
    name="steps",
    symbol="t",
    unit="steps",
    lower=1,
    upper=10**9,
    typical=(1, 2, 100, 1000, 10_000),
    meaning="Number of steps in one epoch; the steps that use an example are chosen from them",
)
PARTICIPATIONS = Integer(
    name="participations",
    symbol="k",
    unit="steps",
    lower=1,
    upper=10**9,
    typical=(1, 2, 10),
    meaning="Number of steps of an epoch that use an example, chosen uniformly without replacement",
)
EPOCHS = Integer(
    name="epochs",
    symbol="E",
    unit="epochs",
    lower=1,
    upper=10**6,
    typical=(1, 2, 10),
    meaning="Number of epochs; each chooses its steps independently",
)
SAMPLING_PROBABILITY = Real(
    name="sampling_probability",
    symbol=r"\lambda",
    lower=1e-12,
    upper=1.0,
    typical=(1e-4, 1e-3, 1e-2, 0.5, 1.0),
    meaning="Probability that an example is included in a step, or in an epoch of sampled allocation",
)
DELTA = Real(
    name="delta",
    symbol=r"\delta",
    lower=0.0,
    upper=1.0,
    lower_open=True,
    upper_open=True,
    typical=(1e-10, 1e-8, 1e-6, 1e-4, 1e-2),
    meaning=DELTA_MEANING,
)
EPSILON = Real(
    name="epsilon",
    symbol=r"\varepsilon",
    unit="nats",
    lower=-100.0,
    upper=10_000.0,
    typical=(0.01, 0.1, 0.5, 1.0, 4.0),
    meaning="Epsilon at which delta is computed; it may be negative, as bounds for subsampling require",
)
WIDTH = 1e-3
"""Default relative width of a bracket of epsilon, of every method and at every door."""
TOLERANCE = Real(
    name="tolerance",
    symbol=r"\tau",
    lower=1e-4,
    upper=1.0,
    typical=(0.01, 0.001),
    meaning="Requested relative width of the bracket, upper/lower - 1; affects only tightness and speed",
)
EXAMPLES = Integer(
    name="examples",
    symbol="n",
    unit="examples",
    lower=1,
    upper=10**15,
    typical=(100, 1000, 60_000, 100_000),
    meaning="Number of examples in the data set",
)
REPETITIONS = Integer(
    name="repetitions",
    symbol="R",
    unit="repetitions",
    lower=1,
    upper=10**7,
    typical=(10_000, 100_000),
    meaning="Independent repetitions of a simulation",
)
CONFIDENCE = Real(
    name="confidence",
    symbol=r"1 - \beta",
    lower=0.5,
    upper=1.0,
    upper_open=True,
    typical=(0.95, 0.99, 0.999),
    meaning="Probability that the interval of a simulation contains the truth",
)
SAMPLES = Integer(
    name="samples",
    symbol="n",
    unit="samples",
    lower=100,
    upper=10**9,
    typical=(1000, 10_000, 100_000),
    meaning="Independent samples of a simulation; for each direction, if both add and remove are simulated",
)
CLAIMED_EPSILON = Real(
    name="claimed_epsilon",
    symbol=r"\varepsilon",
    unit="nats",
    lower=0.0,
    upper=700.0,
    typical=(0.5, 1.0, 2.0, 4.0),
    meaning="Epsilon claimed for a mechanism",
)
