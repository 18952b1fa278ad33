"""Parameters of problems and knobs, declared once: name, domain, typical values, unit, meaning.

Those of one topic are in its own `params.py`.
"""

from privcore.parameter import Choice, Integer, Real

SIGMA = Real(
    name="sigma",
    symbol=r"\sigma",
    unit="sensitivities",
    lower=1e-3,
    upper=1e6,
    typical=(0.3, 0.5, 1.0, 2.0, 10.0),
    meaning="Noise multiplier: standard deviation of the Gaussian noise of one step over its sensitivity",
)
LAPLACE_SCALE = Real(
    name="scale",
    symbol="b",
    unit="sensitivities",
    lower=1e-2,
    upper=1e6,
    typical=(0.5, 1.0, 2.0, 10.0),
    meaning="Scale of the Laplace noise of one step over its sensitivity; one step is 1/scale-DP",
)
LOCAL_EPSILON = Real(
    name="local_epsilon",
    symbol=r"\varepsilon_0",
    unit="nats",
    lower=1e-6,
    upper=100.0,
    typical=(0.5, 1.0, 2.0, 4.0),
    meaning="Pure differential privacy of one step; the randomized response is the worst such step",
)
STEPS = Integer(
    name="steps",
    symbol="t",
    unit="steps",
    lower=1,
    upper=10**9,
    typical=(1, 2, 100, 1000, 10_000),
    meaning="Steps of one epoch among which the steps that use an example are chosen",
)
PARTICIPATIONS = Integer(
    name="participations",
    symbol="k",
    unit="steps",
    lower=1,
    upper=10**9,
    typical=(1, 2, 10),
    meaning="Steps of one epoch that use an example, chosen uniformly without replacement",
)
EPOCHS = Integer(
    name="epochs",
    symbol="E",
    unit="epochs",
    lower=1,
    upper=10**6,
    typical=(1, 2, 10),
    meaning="Epochs; every epoch draws its steps anew",
)
SAMPLING_PROBABILITY = Real(
    name="sampling_probability",
    symbol=r"\lambda",
    lower=1e-12,
    upper=1.0,
    typical=(1e-4, 1e-3, 1e-2, 0.5, 1.0),
    meaning="Probability with which a step, or the epoch of a sampled allocation, includes an example",
)
DELTA = Real(
    name="delta",
    symbol=r"\delta",
    lower=0.0,
    upper=1.0,
    lower_open=True,
    upper_open=True,
    typical=(1e-10, 1e-8, 1e-6, 1e-4, 1e-2),
    meaning="Probability budget of approximate differential privacy",
)
EPSILON = Real(
    name="epsilon",
    symbol=r"\varepsilon",
    unit="nats",
    lower=-100.0,
    upper=10_000.0,
    typical=(0.01, 0.1, 0.5, 1.0, 4.0),
    meaning="Privacy loss threshold; the profile is defined, and needed by subsampling, for every real value",
)
ADJACENCY = Choice(
    name="adjacency",
    symbol=r"\sim",
    choices=("add-remove", "remove", "add"),
    meaning="Neighbouring relation: the example is removed (in P), added (in Q), or the worse of the two",
)
TOLERANCE = Real(
    name="tolerance",
    symbol=r"\tau",
    lower=1e-4,
    upper=1.0,
    typical=(0.01, 0.001),
    meaning="Asked relative width of the bracket, upper/lower - 1: a matter of tightness and speed only",
)
THINNING = Real(
    name="thinning",
    symbol=r"t \lambda",
    lower=0.01,
    upper=1.0,
    typical=(1.0, 0.1),
    meaning="Expected participations of the Poisson sampling that stands in for allocation; less is tighter",
)
ORDERS = Integer(
    name="orders",
    symbol=r"\alpha_{\max}",
    lower=2,
    upper=1024,
    typical=(64, 256, 1024),
    meaning="Highest integer order of the Renyi divergences; more are tighter where epsilon is small",
)
EXAMPLES = Integer(
    name="examples",
    symbol="n",
    unit="examples",
    lower=1,
    upper=10**15,
    typical=(100, 1000, 60_000, 100_000),
    meaning="Examples in the data set",
)
DIMENSION = Integer(
    name="dimension",
    symbol="d",
    unit="coordinates",
    lower=1,
    upper=10**9,
    typical=(1, 10, 1000),
    meaning="Coordinates of an example, each 0 or 1; the sensitivity of a sum is its square root",
)
PROPORTION = Real(
    name="proportion",
    symbol="p",
    lower=0.0,
    upper=1.0,
    typical=(0.1, 0.5, 0.9, 1.0),
    meaning="Probability with which a coordinate of an example is 1",
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
    meaning="Probability with which the interval of a simulation is to contain the truth",
)
RANGE_BOUND = Choice(
    name="range_bound",
    symbol="c",
    choices=("sinh", "cosh"),
    meaning="Bound of half the range of the one-step ratio: itself, sinh, or the published cosh",
)
SPLIT = Choice(
    name="split",
    symbol=r"\pi",
    choices=("optimal", "authors"),
    meaning="How delta is split among the terms of a bound: optimally, or as in the authors' program",
)
SAMPLES = Integer(
    name="samples",
    symbol="n",
    unit="samples",
    lower=100,
    upper=10**9,
    typical=(1000, 10_000, 100_000),
    meaning="Independent samples of a simulation, in every direction",
)
SAMPLING = Choice(
    name="sampling",
    symbol="-",
    choices=("order", "importance", "plain"),
    meaning=(
        "What a simulation draws: all outputs; all, given that the integrand can be positive; or then only "
        "the order statistics that matter"
    ),
)
LOSS_STEP = Real(
    name="loss_step",
    symbol="h",
    unit="nats",
    lower=1e-9,
    upper=10.0,
    typical=(1e-4, 1e-3),
    meaning="Distance of two losses of a discrete privacy loss distribution",
)
CLAIMED_EPSILON = Real(
    name="claimed_epsilon",
    symbol=r"\varepsilon",
    unit="nats",
    lower=0.0,
    upper=700.0,
    typical=(0.5, 1.0, 2.0, 4.0),
    meaning="Epsilon that a mechanism is claimed to have",
)
