"""Every parameter of every problem and knob, declared once: name, domain, typical values, unit, meaning."""

from privcore.parameter import Choice, Integer, Real, Text
from privcore.priors.spelling import canonical_bag, canonical_classes, canonical_prior

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
MECHANISM = Choice(
    name="mechanism",
    symbol="M",
    choices=("none", "rr", "llp", "llp-laplace", "llp-geometric"),
    meaning=(
        "How labels are released: not at all, each by randomized response, or only their sum in a bag, which "
        "is exact, or has Laplace or clipped two-sided geometric noise"
    ),
)
LABEL_EPSILON = Real(
    name="label_epsilon",
    symbol=r"\varepsilon",
    unit="nats",
    lower=0.0,
    upper=700.0,
    lower_open=True,
    infinite=True,
    typical=(0.0625, 0.25, 1.0, 4.0, float("inf")),
    meaning="Label differential privacy of the mechanism; inf where it adds no noise",
)
BAG_SIZE = Integer(
    name="bag_size",
    symbol="k",
    unit="examples",
    lower=1,
    upper=10**6,
    typical=(1, 2, 3, 8, 64),
    meaning="Examples in a bag, of whose labels only the sum is released",
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
    meaning=(
        "Law of eta, the probability of label 1 given the features of an example; examples are independent"
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
    meaning="Mean additive advantage over the examples of the bags, given all features",
)
BAGS = Integer(
    name="bags",
    symbol="n",
    unit="bags",
    lower=1,
    upper=10**6,
    typical=(1, 4),
    meaning="Bags over which the advantage is averaged; without bags, examples",
)
LOG_RATIO = Real(
    name="log_ratio",
    symbol="t",
    unit="nats",
    lower=0.0,
    upper=10_000.0,
    typical=(0.1, 0.5, 1.0, 2.0),
    meaning="Absolute log-likelihood ratio of the two labels, the multiplicative advantage",
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
    meaning="Probability of label 1 of every example in a bag",
)
MEMBER = Integer(
    name="member",
    symbol="i",
    lower=1,
    upper=10**5,
    typical=(1, 2, 3),
    meaning="Position in the bag of the attacked example, from 1",
)
RELEASED = Real(
    name="released",
    symbol="z",
    unit="labels",
    lower=-1e9,
    upper=1e9,
    typical=(0.0, 1.0, 2.0, 3.0),
    meaning="What is released: a noisy label, or the noisy number of labels 1 in the bag",
)
CLASSES = Text(
    name="classes",
    symbol=r"\eta_{i, a}",
    grammar="{probabilities of the classes, one list an example, such as 0.2,0.8;0.6,0.4}",
    canonical=canonical_classes,
    typical=("0.2,0.3,0.5", "0.1,0.1,0.8", "0.2,0.3,0.5;0.6,0.3,0.1"),
    meaning="Probability of every class, for every example in a bag",
)
OUTPUTS = Integer(
    name="outputs",
    symbol="N",
    unit="outputs",
    lower=1000,
    upper=10**8,
    typical=(10_000, 100_000),
    meaning="Outputs of the mechanism over which a sum may run, in all compositions of the others together",
)
DATA = Choice(
    name="data",
    symbol="S",
    choices=("higgs-like", "kdd-like", "breast-cancer", "digits"),
    meaning="Data set with a fixed split: two stand-ins with a known law of the labels, and two real ones",
)
MODEL = Choice(
    name="model",
    symbol="h",
    choices=("logistic", "mlp"),
    meaning="What is trained: a logistic regression, or a network with one layer of 32 rectified units",
)
TRIALS = Integer(
    name="trials",
    symbol="T",
    unit="trials",
    lower=2,
    upper=1000,
    typical=(2, 3),
    meaning="Trainings from independent releases, orders of the examples and first weights",
)
FORM = Choice(
    name="form",
    symbol="-",
    choices=("tight", "published"),
    meaning="Constants of a bound: the least that its proof gives, or those that are published",
)
CANARIES = Integer(
    name="canaries",
    symbol="m",
    unit="canaries",
    lower=1,
    upper=10**9,
    typical=(100, 1000, 100_000),
    meaning="Canaries of an audit whose inclusion was randomised, guessed or not",
)
GUESSES = Integer(
    name="guesses",
    symbol="c'",
    unit="canaries",
    lower=0,
    upper=10**9,
    typical=(10, 50, 100),
    meaning="Canaries about which the auditor guesses at most, fixed before the run",
)
CORRECT = Integer(
    name="correct",
    symbol="c",
    unit="canaries",
    lower=0,
    upper=10**9,
    typical=(5, 10, 40, 90),
    meaning="Guesses that were correct",
)
ALTERNATIVES = Integer(
    name="alternatives",
    symbol="k",
    lower=2,
    upper=10**6,
    typical=(2, 2, 10),
    meaning="Choices for every canary: 2 for in or out; more where records replace one another",
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
MU = Real(
    name="mu",
    symbol=r"\mu",
    lower=0.0,
    upper=30.0,
    typical=(0.25, 0.5, 1.0, 2.0),
    meaning="Gaussian differential privacy: distance of two unit normal laws that are as hard to tell apart",
)
PROFILE_POINTS = Integer(
    name="profile_points",
    symbol="-",
    lower=2,
    upper=1000,
    typical=(20, 40),
    meaning="Points of the privacy profile that a linear programme takes into account",
)
NULL_FAMILY = Choice(
    name="family",
    symbol="f",
    choices=("approximate", "gaussian"),
    meaning="What an audit refutes: (epsilon, delta)-DP of any mechanism, or the privacy of Gaussian noise",
)
BUG = Choice(
    name="bug",
    symbol="-",
    choices=("none", "noise-halved", "noise-unscaled", "clip-after-averaging", "rate-doubled"),
    meaning=(
        "What is wrong with a training: nothing, half the noise, noise without the clip norm as a factor, "
        "clipping of the mean instead of the gradients, or batches twice as large as is accounted for"
    ),
)
AUDIT_CONFIDENCE = Real(
    name="audit_confidence",
    symbol=r"1 - \tau",
    lower=0.5,
    upper=1.0,
    upper_open=True,
    typical=(0.95, 0.99),
    meaning="Confidence of an audit: one minus the probability with which it refutes what is true",
)
