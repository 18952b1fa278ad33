"""Parameters of the releases of labels, declared once, as in `params`."""

from dataclasses import replace

from privcore.distributions.notation import file_assumption
from privcore.distributions.prior_notation import (
    canonical_bag,
    canonical_classes,
    canonical_histogram,
    canonical_lists,
    canonical_numbers,
    canonical_prior,
    canonical_weights,
)
from privcore.parameter import Choice, Integer, Real, Text

MECHANISM = Choice(
    name="mechanism",
    symbol="M",
    choices=("none", "rr", "llp", "llp-laplace", "llp-geometric"),
    meaning=(
        "Release of the labels: none at all, each label by randomized response (rr), or only the sum of the "
        "labels in a bag, exact (llp), with Laplace noise or with clipped two-sided geometric noise"
    ),
)
CLASS_MECHANISM = replace(
    MECHANISM,
    choices=("none", "rr", "llp"),
    meaning=(
        "Release of the classes: none at all, each class by randomized response (rr), or only the number of "
        "examples of each class in the bag (llp)"
    ),
)
LABEL_EPSILON = Real(
    name="label_epsilon",
    symbol=r"\varepsilon",
    unit="nats",
    lower=0.0,
    upper=700.0,
    infinite=True,
    typical=(0.0625, 0.25, 1.0, 4.0, float("inf")),
    meaning="Label differential privacy epsilon of the mechanism; inf for a mechanism without noise",
)
CLASS_EPSILON = replace(
    LABEL_EPSILON,
    infinite=False,
    typical=(0.0625, 0.25, 1.0, 4.0),
    meaning="Label differential privacy epsilon of the randomized response",
)
BAG_SIZE = Integer(
    name="bag_size",
    symbol="k",
    unit="examples",
    lower=1,
    upper=10**6,
    typical=(1, 2, 3, 8, 64),
    meaning="Number of examples in a bag; only the sum of their labels is released",
)
PRIOR = Text(
    name="prior",
    symbol="D",
    grammar=("{uniform, beta(a,b), point(p), two-point(a,b,w), logit-normal(m,s), column(file,name)}"),
    canonical=canonical_prior,
    typical=(
        "uniform",
        "beta(2,30)",
        "point(0.3)",
        "two-point(0.05,0.7,0.25)",
        "logit-normal(-3.661,1.1815)",
    ),
    assumes=file_assumption,
    meaning=(
        "Distribution of eta, the probability of label 1 given the features of an example; examples are "
        "independent"
    ),
)
DRAW = Choice(
    name="draw",
    symbol="-",
    choices=("with-replacement", "partition"),
    meaning=(
        "Bags of a column: independent draws from its values (with-replacement), or the rows of the file cut "
        "into random bags (partition), which reveals more; a question about a column means the partition"
    ),
)
ETA = Real(
    name="eta",
    symbol=r"\eta",
    lower=0.0,
    upper=1.0,
    typical=(0.05, 0.3, 0.5, 0.9),
    meaning="Probability that the label of the attacked example is 1, given its features",
)
ADVANTAGE_THRESHOLD = Real(
    name="threshold",
    symbol=r"\theta",
    lower=0.0,
    upper=1.0,
    typical=(0.0, 0.01, 0.05, 0.2),
    meaning="Threshold of the additive advantage, given all features: of an example, or the mean in bags",
)
BAGS = Integer(
    name="bags",
    symbol="n",
    unit="bags",
    lower=1,
    upper=10**6,
    typical=(1, 4),
    meaning="Number of bags over which the advantage is averaged, or of examples if there are no bags",
)
LOG_RATIO = Real(
    name="log_ratio",
    symbol="t",
    unit="nats",
    lower=0.0,
    upper=10_000.0,
    typical=(0.1, 0.5, 1.0, 2.0),
    meaning="Absolute log-likelihood ratio of the two labels, also called multiplicative advantage",
)
LEVEL = Real(
    name="level",
    symbol="q",
    lower=0.0,
    upper=1.0,
    lower_open=True,
    upper_open=True,
    typical=(0.5, 0.9, 0.98),
    meaning="Level of a quantile: the least value that is not exceeded with this probability",
)
BAG = Text(
    name="bag",
    symbol=r"\eta_1, \dots, \eta_k",
    grammar="{probabilities, such as 0.1,0.4,0.45}",
    canonical=canonical_bag,
    typical=("0.2,0.5,0.8", "0.1,0.4,0.45,0.9", "0,1,0.3,0.6"),
    meaning="Probability of label 1 of each example in a bag",
)
MEMBER = Integer(
    name="member",
    symbol="i",
    lower=1,
    upper=10**5,
    typical=(1, 2, 3),
    meaning="Position of the attacked example in its bag, counted from 1",
)
RELEASED = Real(
    name="released",
    symbol="z",
    unit="labels",
    lower=-1e9,
    upper=1e9,
    typical=(0.0, 1.0, 2.0, 3.0),
    meaning="Released value: a noisy label, or the noisy number of examples with label 1 in the bag",
)
CLASSES = Text(
    name="classes",
    symbol=r"\eta_{i, a}",
    grammar="{probabilities of the classes, one list for each example, such as 0.2,0.8;0.6,0.4}",
    canonical=canonical_classes,
    typical=("0.2,0.3,0.5", "0.1,0.1,0.8", "0.2,0.3,0.5;0.6,0.3,0.1"),
    meaning="Probabilities of the classes, for each example in a bag",
)
HISTOGRAM = Text(
    name="histogram",
    symbol="z",
    grammar="{numbers of examples of the classes, such as 2,0,1}",
    canonical=canonical_histogram,
    typical=("1,0,0", "0,1,0", "1,1,0", "2,0,0"),
    meaning="Released number of examples of each class; a released class of one example is a single 1",
)
FIRST_CLASS = Integer(
    name="first_class",
    symbol="a",
    lower=1,
    upper=10_000,
    typical=(1, 2),
    meaning="Class a of the ratio, counted from 1",
)
SECOND_CLASS = replace(
    FIRST_CLASS, name="second_class", symbol="b", typical=(2, 3), meaning="Class b of the ratio"
)
SUMS = Text(
    name="sums",
    symbol="W",
    grammar="{weights of the examples, one list for each released sum, such as 1,1,0;0,1,1}",
    canonical=canonical_weights,
    typical=("1,1,1", "1,1,0;0,1,1", "1,2,4", "0.5,-1,1"),
    meaning="Weights of the labels in each released sum; sums overlap if an example has weights in several",
)
FEATURES = Text(
    name="features",
    symbol="x",
    grammar="{features of the examples, one list for each example, such as 1,0.5;1,-2}",
    canonical=canonical_lists,
    typical=("1;2;-1", "1,0.5;1,-2;0,1", "1,0;1,0.5;1,-1;1,2"),
    meaning="Features of each example in the bag; a constant feature 1 is an intercept",
)
WEIGHTS = Text(
    name="weights",
    symbol="w",
    grammar="{weights of the features, such as 0.3,-1}",
    canonical=canonical_numbers,
    typical=("0.5", "0.3,-1", "0,0"),
    meaning="Weights of the logistic regression, one for each feature",
)
CLASS_NUMBER = Integer(
    name="class_number",
    symbol="c",
    unit="classes",
    lower=2,
    upper=10**6,
    typical=(2, 3, 10, 1000),
    meaning="Number of classes",
)
FLIP_PROBABILITY = Real(
    name="flip_probability",
    symbol=r"\pi",
    lower=0.0,
    upper=1.0,
    upper_open=True,
    typical=(0.0, 0.1, 0.25, 0.5),
    meaning="Probability that the released class is not the true one",
)
CAPACITY = Real(
    name="capacity",
    symbol="C",
    unit="bits",
    lower=0.0,
    upper=20.0,
    typical=(0.01, 0.25, 1.0),
    meaning="Capacity of the channel from the class to the released class",
)
OUTPUTS = Integer(
    name="outputs",
    symbol="N",
    unit="outputs",
    lower=1000,
    upper=10**8,
    typical=(10_000, 100_000),
    meaning="Largest number of terms in the sum over the outputs and over the cells of the other examples",
)
DATA = Choice(
    name="data",
    symbol="S",
    choices=("higgs-like", "kdd-like", "breast-cancer", "digits"),
    meaning=(
        "Data set with a fixed split: two synthetic data sets with a known distribution of the labels, or "
        "two real ones"
    ),
)
MODEL = Choice(
    name="model",
    symbol="h",
    choices=("logistic", "mlp"),
    meaning="Trained model: logistic regression, or a network with one hidden layer of 32 rectified units",
)
TRIALS = Integer(
    name="trials",
    symbol="T",
    unit="trials",
    lower=2,
    upper=1000,
    typical=(2, 3),
    meaning="Number of trainings, each with independent release, order of examples and initial weights",
)
FORM = Choice(
    name="form",
    symbol="-",
    choices=("tight", "published"),
    meaning="Constants of a bound: the smallest that its proof gives (tight), or the published ones",
)
