"""Parameters of experiments with learners, declared once, as in `params`."""

from privcore.parameter import Choice, Integer, Real

LEARNER = Choice(
    name="learner",
    symbol="A",
    choices=("network", "linear", "nearest"),
    meaning=(
        "Learner: a network with one hidden layer of rectified linear units, least squares of minimum norm, "
        "or the nearest neighbour"
    ),
)
TESTED = Choice(
    name="tested",
    symbol="z",
    choices=("train", "fresh"),
    meaning="Record whose loss is evaluated: one of the training set, or a fresh one",
)
WIDTH = Integer(
    name="width",
    symbol="w",
    unit="units",
    lower=0,
    upper=10**6,
    typical=(0, 64, 512),
    meaning="Units in the hidden layer of a network; 0 for other learners",
)
ITERATIONS = Integer(
    name="iterations",
    symbol="t",
    unit="iterations",
    lower=0,
    upper=10**5,
    typical=(0, 100, 250),
    meaning="Training iterations of a network, each on all records at once",
)
STOPPING_LOSS = Real(
    name="stopping_loss",
    symbol=r"\eta",
    unit="squared targets",
    lower=0.0,
    upper=1e12,
    typical=(0.0, 0.0, 1e-3),
    meaning="Mean squared training loss at which the training of a network stops early; 0 never does",
)
RUNS = Integer(
    name="runs",
    symbol="R",
    unit="runs",
    lower=2,
    upper=1000,
    typical=(2, 3),
    meaning="Number of trainings that are averaged, each with independent data and initial weights",
)
CLUSTERS = Integer(
    name="clusters",
    symbol="K",
    unit="clusters",
    lower=0,
    upper=200,
    typical=(0, 2, 5, 10, 20),
    meaning="Clusters to whose centres the images are moved; 0 leaves the images as they are",
)
ATTRIBUTES = Choice(
    name="attributes",
    symbol="z",
    choices=("cluster", "cluster-and-label"),
    meaning="Content of a record: the number of its cluster, or this number and the label",
)
