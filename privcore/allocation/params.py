"""Parameters of random allocation and of its methods, declared once."""

from privcore.parameter import Choice, Integer, Real

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
ADJACENCY = Choice(
    name="adjacency",
    symbol=r"\sim",
    choices=("add-remove", "remove", "add"),
    meaning="Neighbouring relation: the example is removed (in P), added (in Q), or the worse of the two",
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
