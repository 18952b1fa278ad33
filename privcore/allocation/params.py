"""Parameters of random allocation and of its methods."""

import math

from privcore.errors import DomainError
from privcore.parameter import Choice, Integer, Real, Text

HIGHEST_ORDER = 1024


def curve_points(text: str) -> list[tuple[float, float]]:
    """Return the orders and divergences of a text such as 2:0.5,3:0.8, by rising order.

    Raises:
        ValueError: The text does not have this form.
    """
    pairs = [part.split(":") for part in text.split(",")]
    return sorted((float(order), float(divergence)) for order, divergence in pairs)


def _canonical_curve(text: str) -> str | None:
    """Return the canonical spelling of a Renyi curve; None if the text does not have its form."""
    try:
        points = curve_points(text)
    except ValueError:
        return None
    orders = [order for order, _ in points]
    if not all(1.0 < order <= HIGHEST_ORDER for order in orders) or len(set(orders)) < len(orders):
        raise DomainError(f"Expected orders in (1, {HIGHEST_ORDER}], each once, got renyi_curve={text[:60]}.")
    if orders[-1] < 2.0:
        raise DomainError(f"Expected a divergence of an order of at least 2, got renyi_curve={text[:60]}.")
    if not all(0.0 <= divergence < math.inf for _, divergence in points):
        raise DomainError(f"Expected finite divergences of at least 0, got renyi_curve={text[:60]}.")
    return ",".join(f"{order!r}:{abs(value)!r}".replace(".0:", ":") for order, value in points)


RENYI_CURVE = Text(
    name="renyi_curve",
    symbol=r"R_\alpha",
    grammar="{orders and divergences of a step, such as 2:0.5,3:0.8,4:1.1}",
    canonical=_canonical_curve,
    typical=("2:0.1,3:0.15,4:0.2", "2:1.0,4:2.0,8:4.0,16:8.0", "1.5:0.02,2:0.03,32:0.5"),
    meaning=(
        "Upper bounds, in nats, of the Renyi divergences of the output of a step with the example from that "
        "of a step without it; orders above 1, at least one of them 2 or more"
    ),
)

LAPLACE_SCALE = Real(
    name="scale",
    symbol="b",
    unit="sensitivities",
    lower=1e-2,
    upper=1e6,
    typical=(0.5, 1.0, 2.0, 10.0),
    meaning="Scale of the Laplace noise of one step divided by its sensitivity; a step is (1/scale)-DP",
)
TARGET_EPSILON = Real(
    name="epsilon",
    symbol=r"\varepsilon",
    unit="nats",
    # Below this, the total variation determines the noise, and brackets of epsilon do not resolve it.
    lower=1e-3,
    upper=10_000.0,
    typical=(0.01, 0.1, 0.5, 1.0, 4.0),
    meaning="Target epsilon: the noise is the least with which all steps are (epsilon, delta)-private",
)
LOCAL_EPSILON = Real(
    name="local_epsilon",
    symbol=r"\varepsilon_0",
    unit="nats",
    lower=1e-6,
    upper=100.0,
    typical=(0.5, 1.0, 2.0, 4.0),
    meaning="Epsilon of the differential privacy of one step; randomized response is the worst case",
)
LOCAL_DELTA = Real(
    name="local_delta",
    symbol=r"\delta_0",
    lower=0.0,
    upper=0.5,
    typical=(0.0, 1e-9, 1e-6),
    meaning="Delta of the differential privacy of one step; 0 is pure differential privacy",
)
LARGEST_PARTICIPATIONS = Integer(
    name="largest_participations",
    symbol=r"k_{\max}",
    unit="steps",
    lower=1,
    upper=10**9,
    typical=(1, 2, 10),
    meaning="Most steps of an epoch that use an example; of more sampled steps, a random choice uses it",
)
ADJACENCY = Choice(
    name="adjacency",
    symbol=r"\sim",
    choices=("add-remove", "remove", "add", "zero-out"),
    meaning=(
        "Neighbouring relation: remove (the first data set has the example), add (the second has it), or the "
        "worse of the two; zero-out (its gradient becomes 0) is equal to add-remove"
    ),
)
REPLACEABLE = Choice(
    name="adjacency",
    symbol=r"\sim",
    choices=("add-remove", "remove", "add", "zero-out", "replace-one"),
    meaning=(
        "Neighbouring relation: remove (the first data set has the example), add (the second has it), or the "
        "worse of the two; zero-out (its gradient becomes 0) is equal to add-remove; replace-one (its "
        "gradient becomes any other clipped gradient)"
    ),
)
SHUFFLING_ADJACENCY = Choice(
    name="adjacency",
    symbol=r"\sim",
    choices=("zero-out", "remove", "add", "replace-one"),
    meaning=(
        "Neighbouring relation: the gradient of the example is 0 in one data set (zero-out; remove is from "
        "the data set with the example, add is the reverse), or another clipped gradient (replace-one)"
    ),
    former=(("add-remove", "zero-out"),),
    refusal=(
        "Expected adjacency zero-out or replace-one for shuffling: add-remove is defined only if every epoch "
        "leaves out examples (--drop-last with --examples and --batch-size), since otherwise the number of "
        "batches would change; numbers of Poisson sampling are usually quoted for add-remove."
    ),
)
SHUFFLED = Choice(
    name="redraw",
    symbol=r"\pi_e",
    choices=("one-epoch", "each-epoch", "once"),
    meaning=(
        "Order of the examples if there are several epochs: shuffled again for each epoch, or shuffled once "
        "and kept; one-epoch is for a single epoch"
    ),
)
THINNING = Real(
    name="thinning",
    symbol=r"t \lambda",
    lower=0.01,
    upper=1.0,
    typical=(1.0, 0.1),
    meaning="Expected participations under the Poisson sampling that replaces allocation; smaller is tighter",
)
ORDERS = Integer(
    name="orders",
    symbol=r"\alpha_{\max}",
    lower=2,
    upper=1024,
    typical=(64, 256, 1024),
    meaning="Highest integer order of the Renyi divergences; higher is tighter when epsilon is small",
)
RENYI_ORDER = Integer(
    name="renyi_order",
    symbol=r"\alpha",
    lower=1,
    upper=1024,
    typical=(2, 8, 32),
    meaning="Whole part of the order of the Renyi divergence; order 1 is the divergence of Kullback-Leibler",
)
ORDER_FRACTION = Real(
    name="order_fraction",
    symbol=r"\alpha - \lfloor \alpha \rfloor",
    lower=0.0,
    upper=1.0,
    upper_open=True,
    typical=(0.0, 0.5),
    meaning="Part of the order of the Renyi divergence after the decimal point",
)
DIMENSION = Integer(
    name="dimension",
    symbol="d",
    unit="coordinates",
    lower=1,
    upper=10**9,
    typical=(1, 10, 1000),
    meaning="Number of coordinates of an example, each 0 or 1; a sum has sensitivity sqrt(dimension)",
)
PROPORTION = Real(
    name="proportion",
    symbol="p",
    lower=0.0,
    upper=1.0,
    typical=(0.1, 0.5, 0.9, 1.0),
    meaning="Probability that a coordinate of an example is 1",
)
RANGE_BOUND = Choice(
    name="range_bound",
    symbol="c",
    choices=("sinh", "cosh"),
    meaning="Bound on half the range of the one-step likelihood ratio: exact (sinh), or as published (cosh)",
)
SPLIT = Choice(
    name="split",
    symbol=r"\pi",
    choices=("optimal", "authors"),
    meaning="Split of delta among the terms of a bound: optimal, or as in the authors' program",
)
SAMPLING = Choice(
    name="sampling",
    symbol="-",
    choices=("order", "importance", "plain"),
    meaning=(
        "Sampling of a simulation: plain draws all outputs; importance draws them given that the integrand "
        "can be positive; order, in addition, draws only the order statistics that matter"
    ),
)
LOSS_STEP = Real(
    name="loss_step",
    symbol="h",
    unit="nats",
    lower=1e-9,
    upper=10.0,
    typical=(1e-4, 1e-3),
    meaning="Distance between neighbouring losses of a discrete privacy loss distribution",
)
