"""Parameters of training runs."""

from privcore.parameter import Choice, Integer, Real
from privcore.params import EXAMPLES

REDRAW = Choice(
    name="redraw",
    symbol="-",
    choices=("once", "each-epoch"),
    meaning=(
        "Draw of the step of an example: once, for all epochs, or a new draw in each epoch, which is more "
        "private"
    ),
)
DROPPED = Real(
    name="dropped",
    symbol="r / n",
    lower=0.0,
    upper=1.0,
    upper_open=True,
    typical=(0.0, 0.0016, 0.1),
    meaning=(
        "Share of the examples that every epoch leaves out, since they do not fill a batch (drop_last) or "
        "the epoch ends early"
    ),
)
BATCH = Integer(
    name="batch",
    symbol="b",
    unit="examples",
    lower=1,
    upper=10**9,
    typical=(1, 256, 4096),
    meaning="Number of examples in a batch, if every epoch uses all examples; 1 if it is unknown",
)
KEPT = Real(
    name="kept",
    symbol="r / n",
    lower=0.0,
    upper=1.0,
    upper_open=True,
    typical=(0.0, 0.0016, 0.1),
    meaning="Share of the examples in a smaller last batch of every epoch, after its steps",
)
ADJACENCY = Choice(
    name="adjacency",
    symbol=r"\sim",
    choices=(
        "add-remove",
        "remove",
        "add",
        "zero-out",
        "zero-out-remove",
        "zero-out-add",
        "replace-one",
    ),
    meaning=(
        "Neighbouring relation: one example more or less (add-remove), one clipped gradient set to zero "
        "(zero-out), or one example replaced by any other (replace-one); remove and add are the two "
        "directions of add-remove"
    ),
)
BATCH_SIZE = Integer(
    name="batch_size",
    symbol="b",
    unit="examples",
    lower=1,
    upper=10**9,
    typical=(1, 10, 256),
    meaning="Number of examples in every batch, drawn independently with replacement",
)
LARGEST_BATCH = Integer(
    name="largest_batch",
    symbol="B",
    unit="examples",
    lower=1,
    upper=10**9,
    typical=(60, 256, 2000),
    meaning="Largest number of examples in a batch; of a larger Poisson sample, a uniform part is used",
)
GROUP = Integer(
    name="group",
    symbol="m",
    unit="examples",
    lower=1,
    upper=1000,
    typical=(1, 2, 8),
    meaning="Number of examples of one owner, which are added, removed or set to zero together",
)
SAMPLED_EXAMPLES = Integer(
    name="examples",
    symbol="n",
    unit="examples",
    lower=1,
    upper=10**9,
    typical=(1000, 60_000),
    meaning=EXAMPLES.meaning,
)
FALSE_POSITIVE_RATE = Real(
    name="false_positive_rate",
    symbol=r"\alpha",
    lower=1e-30,
    upper=1.0,
    upper_open=True,
    typical=(1e-6, 1e-3, 0.01, 0.1),
    meaning="False positive rate of a membership test: the share of tests that wrongly reject",
)
TRUE_POSITIVE_RATE = Real(
    name="true_positive_rate",
    symbol=r"\beta",
    lower=1e-30,
    upper=1.0,
    upper_open=True,
    typical=(0.01, 0.1, 0.5, 0.9),
    meaning="True positive rate of a membership test: the share of tests that rightly reject",
)
SMALLEST_FALSE_POSITIVE_RATE = Real(
    name="smallest_false_positive_rate",
    symbol=r"\alpha_0",
    lower=1e-30,
    upper=0.5,
    typical=(1e-6, 1e-4, 0.01),
    meaning="Smallest false positive rate at which mu is compared; the largest is 1 minus this rate",
)
MEMBER_PROBABILITY = Real(
    name="member_probability",
    symbol=r"\pi",
    lower=1e-9,
    upper=1.0,
    upper_open=True,
    typical=(0.01, 0.5, 0.9),
    meaning="Prior probability that the example is in the data set",
)
