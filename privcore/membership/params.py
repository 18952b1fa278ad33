"""Parameters of membership inference, declared once, as in `params`.

Parameters of experiments only are in `experiments/params.py`.
"""

from dataclasses import replace

from privcore.distributions.columns import canonical_sample
from privcore.distributions.dataset import canonical_dataset
from privcore.distributions.record_notation import canonical_law, law_assumption
from privcore.parameter import Choice, Integer, Real, Text
from privcore.params import DELTA_MEANING

RECORDS = Integer(
    name="records",
    symbol="n",
    unit="records",
    lower=1,
    upper=10**12,
    typical=(1, 10, 1000, 10**6),
    meaning="Number of records in the training set, drawn independently",
)
ODDS = Real(
    name="odds",
    symbol=r"\gamma",
    lower=1e-6,
    upper=1e6,
    typical=(1.0, 1.0, 0.8, 2.0),
    meaning=(
        "Odds of a non-member against a member among the tested records, divided by the weight of members; "
        "1 if both count the same"
    ),
)
COORDINATES = Integer(
    name="coordinates",
    symbol="d",
    unit="coordinates",
    lower=1,
    upper=10**6,
    typical=(1, 2, 2, 10, 100),
    meaning="Dimension of a Gaussian record, or of its features in a regression",
)
RELEASE_NOISE = Real(
    name="release_noise",
    symbol=r"\tau",
    unit="standard deviations of a record",
    lower=0.0,
    upper=1e6,
    typical=(0.0, 0.0, 0.1, 1.0),
    meaning="Standard deviation of the Gaussian noise on the released mean, divided by that of a record",
)
CLAIMED_DELTA = Real(
    name="claimed_delta",
    symbol=r"\delta",
    lower=0.0,
    upper=1.0,
    typical=(0.0, 1e-6, 0.05),
    meaning=f"{DELTA_MEANING}; 0 claims pure differential privacy",
)
NEIGHBOURS = Choice(
    name="neighbours",
    symbol=r"\sim",
    choices=("substitution", "add-remove"),
    meaning="Neighbouring relation: one record is replaced by another, or one is added or removed",
)
INFORMATION = Real(
    name="information",
    symbol="I",
    unit="nats",
    lower=0.0,
    upper=1e6,
    typical=(1e-6, 0.01, 0.1, 1.0),
    meaning="Largest mutual information between the release and one training record",
)
BITS = Integer(
    name="bits",
    symbol="b",
    unit="bits",
    lower=1,
    upper=10**12,
    typical=(1, 8, 64, 10**6),
    meaning="Size of the release in bits",
)
UNFITTED_SHARE = Real(
    name="unfitted_share",
    symbol=r"\alpha",
    lower=0.0,
    upper=1.0,
    typical=(0.0, 0.05, 0.5),
    meaning="Probability that the loss of a training record is above the level of the attack",
)
FRESH_SHARE = replace(
    UNFITTED_SHARE,
    name="fresh_share",
    symbol=r"P(\ell_0 \le \varepsilon)",
    typical=(0.0, 0.008, 0.1),
    meaning="Probability that the loss of a fresh record is at most the level of the attack",
)
LOSS_LEVEL = Real(
    name="loss_level",
    symbol=r"\varepsilon",
    unit="squared targets",
    lower=0.0,
    upper=1e12,
    typical=(1e-6, 1e-4, 0.01),
    meaning="Squared loss up to which the attack classifies a record as a member",
)
NOISE_DEVIATION = Real(
    name="noise_deviation",
    symbol="s",
    unit="targets",
    lower=1e-6,
    upper=1e6,
    typical=(0.1, 1.0),
    meaning="Standard deviation of the Gaussian noise of the target",
)
VALUES = Integer(
    name="values",
    symbol="K",
    unit="values",
    lower=1,
    upper=10**12,
    typical=(2, 10, 1000, 10**12),
    meaning="Number of different values that a record can have, at most; 10^12 is a limit as well",
)
LARGEST_ATOM = Real(
    name="largest_atom",
    symbol=r"\max_k p_k",
    lower=0.0,
    upper=1.0,
    typical=(0.0, 0.0, 0.1, 0.6),
    meaning="Probability of the most frequent value, at least",
)
GINI_SIMPSON = replace(
    LARGEST_ATOM,
    name="gini_simpson",
    symbol=r"1 - \sum_k p_k^2",
    typical=(1.0, 1.0, 0.9, 0.3),
    meaning="Probability that two records differ (Gini-Simpson index), at most; 1 says nothing",
)
ENTROPY = Real(
    name="entropy",
    symbol="H",
    unit="nats",
    lower=0.0,
    upper=28.0,
    typical=(28.0, 28.0, 2.0, 0.5),
    meaning="Shannon entropy of a record, at most; 28 says nothing, as it exceeds ln(10^12)",
)
DIVERSITY = Real(
    name="diversity",
    symbol="C",
    lower=0.0,
    upper=1e6,
    typical=(1e6, 1e6, 6.74, 0.5),
    meaning="Diversity of a record, the sum of sqrt(p (1 - p)), at most; 1e6 says nothing",
)
RATE_CONSTANT = Real(
    name="rate_constant",
    symbol="c_{L,P}",
    lower=1e-6,
    upper=1e6,
    typical=(0.4, 1.0, 5.0),
    meaning="Constant of Theorem 13 for the averaged function and the distribution of a record",
)
SPHERE_DIMENSION = Integer(
    name="sphere_dimension",
    symbol="s",
    unit="features",
    lower=2,
    upper=10**12,
    typical=(1000, 20_000, 10**6),
    meaning="Number of features, which are uniform on a sphere of radius sqrt(s)",
)
MEAN_LOSS = Real(
    name="mean_loss",
    symbol=r"\eta",
    unit="the unit of the loss",
    lower=0.0,
    upper=1e12,
    typical=(0.0, 5e-8, 1e-3),
    meaning="Mean training loss at which the training stops",
)
DATASET = Text(
    name="dataset",
    symbol=r"N_k, p_k",
    grammar="{COUNT/PROBABILITY of every value in the training set, such as 3/0.5,1/0.2}",
    canonical=canonical_dataset,
    typical=("3/0.5,1/0.2", "1/0.25,1/0.25,1/0.25,1/0.25", "10/0.9,1/0.0", "5/0.0"),
    meaning="Number of records with each value of the training set, and the probability of the value",
)
SAMPLE = Text(
    name="sample",
    symbol=r"N_1, N_2, \dots",
    grammar="{counts of the categories, such as 50,30,20, or column(file,name)}",
    canonical=canonical_sample,
    typical=("600,300,100", "40,30,20,10", "2000,500,100,50,20,10,5,5,1,1"),
    meaning="Counts of the categories among independent records from an unknown distribution",
)
TRUE_POSITIVES = Integer(
    name="true_positives",
    symbol="-",
    unit="records",
    lower=0,
    upper=10**9,
    typical=(9, 60, 800),
    meaning="Number of members that the attack classifies as members",
)
MEMBERS = Integer(
    name="members",
    symbol="-",
    unit="records",
    lower=1,
    upper=10**9,
    typical=(10, 100, 1000),
    meaning="Number of members that were attacked, each from a separate training run",
)
FALSE_POSITIVES = Integer(
    name="false_positives",
    symbol="-",
    unit="records",
    lower=0,
    upper=10**9,
    typical=(0, 5, 40),
    meaning="Number of non-members that the attack classifies as members",
)
NONMEMBERS = Integer(
    name="nonmembers",
    symbol="-",
    unit="records",
    lower=1,
    upper=10**9,
    typical=(100, 1000),
    meaning="Number of non-members that were attacked, each from a separate training run",
)
CONFIDENCE_LEVEL = Real(
    name="confidence_level",
    symbol=r"1 - \beta",
    lower=0.5,
    upper=1.0,
    upper_open=True,
    typical=(0.95, 0.99),
    meaning="Probability that a bound computed from data holds",
)
LAW = Text(
    name="law",
    symbol="P",
    grammar=(
        "{uniform(K), geometric(r), zipf(s), zipf(s,K), bernoulli(p), atoms(p,...), column(file,name), "
        "counts(file,name), mixed(w,LAW)}"
    ),
    canonical=canonical_law,
    typical=(
        "uniform(10)",
        "bernoulli(0.1)",
        "atoms(0.5,0.3,0.2)",
        "geometric(0.9)",
        "zipf(1.5)",
        "zipf(3)",
        "zipf(1.2,30)",
        "mixed(0.3,atoms(0.6,0.3,0.1))",
    ),
    assumes=law_assumption,
    meaning="Distribution of a record; only the probabilities of its atoms and of its continuous part matter",
)
NONMEMBER_SHARE = Real(
    name="nonmember_share",
    symbol=r"\nu",
    lower=0.0,
    upper=1.0,
    lower_open=True,
    upper_open=True,
    typical=(0.5, 0.5, 0.25, 0.9),
    meaning="Probability that a tested record is a non-member",
)
MEMBER_WEIGHT = Real(
    name="member_weight",
    symbol=r"\lambda",
    lower=1e-3,
    upper=1e3,
    typical=(1.0, 1.0, 2.0),
    meaning="Weight of a correctly classified member; a correctly classified non-member has weight 1",
)
ATOM_PROBABILITY = Real(
    name="atom_probability",
    symbol="p",
    lower=1e-15,
    upper=1.0,
    typical=(1e-6, 1e-3, 0.1, 0.5, 0.9),
    meaning="Probability that a record has the value of the attacked record",
)
RISK_LEVEL = Real(
    name="risk_level",
    symbol="q",
    lower=0.0,
    upper=1.0,
    lower_open=True,
    typical=(0.5, 0.9, 0.99, 1.0),
    meaning="Level of a quantile of the risk over all records; at level 1 it is the largest risk",
)
FALSE_POSITIVE_RATE = Real(
    name="false_positive_rate",
    symbol="x",
    lower=0.0,
    upper=1.0,
    typical=(0.0, 0.001, 0.01, 0.1, 0.5),
    meaning="False positive rate allowed to the attack: the share of non-members classified as members",
)
TARGET_ADVANTAGE = Real(
    name="target_advantage",
    symbol=r"\Delta",
    lower=1e-6,
    upper=1.0,
    typical=(0.01, 0.05, 0.1, 0.5),
    meaning="Largest tolerated advantage of an attack",
)
