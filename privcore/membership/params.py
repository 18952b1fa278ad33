"""Parameters of membership inference, declared once, as in `params`.

Those of experiments alone are in `experiments/params.py`.
"""

from privcore.distributions.record_notation import canonical_law
from privcore.distributions.sample import canonical_sample
from privcore.parameter import Choice, Integer, Real, Text

RECORDS = Integer(
    name="records",
    symbol="n",
    unit="records",
    lower=1,
    upper=10**12,
    typical=(1, 10, 1000, 10**6),
    meaning="Records of the training set, drawn independently",
)
ODDS = Real(
    name="odds",
    symbol=r"\gamma",
    lower=1e-6,
    upper=1e6,
    typical=(1.0, 1.0, 0.8, 2.0),
    meaning=(
        "Odds of a non-member against a member among the tested records, divided by the weight of members; "
        "1 where both count the same"
    ),
)
COORDINATES = Integer(
    name="coordinates",
    symbol="d",
    unit="coordinates",
    lower=1,
    upper=10**6,
    typical=(1, 2, 2, 10, 100),
    meaning="Coordinates of a Gaussian record; in a regression, of its features",
)
RELEASE_NOISE = Real(
    name="release_noise",
    symbol=r"\tau",
    unit="standard deviations of a record",
    lower=0.0,
    upper=1e6,
    typical=(0.0, 0.0, 0.1, 1.0),
    meaning="Standard deviation of the Gaussian noise on the released mean over that of a record",
)
CLAIMED_DELTA = Real(
    name="claimed_delta",
    symbol=r"\delta",
    lower=0.0,
    upper=1.0,
    typical=(0.0, 1e-6, 0.05),
    meaning="Delta of the approximate differential privacy that a mechanism is claimed to have; 0 is pure",
)
NEIGHBOURS = Choice(
    name="neighbours",
    symbol=r"\sim",
    choices=("substitution", "add-remove"),
    meaning="Neighbouring data sets: one record is replaced by another, or one is added or removed",
)
INFORMATION = Real(
    name="information",
    symbol="I",
    unit="nats",
    lower=0.0,
    upper=1e6,
    typical=(1e-6, 0.01, 0.1, 1.0),
    meaning="Largest mutual information of what is released and one training record",
)
BITS = Integer(
    name="bits",
    symbol="b",
    unit="bits",
    lower=1,
    upper=10**12,
    typical=(1, 8, 64, 10**6),
    meaning="Bits of what is released",
)
UNFITTED_SHARE = Real(
    name="unfitted_share",
    symbol=r"\alpha",
    lower=0.0,
    upper=1.0,
    typical=(0.0, 0.05, 0.5),
    meaning="Probability that the loss of a training record is above the level of the attack",
)
FRESH_SHARE = Real(
    name="fresh_share",
    symbol=r"P(\ell_0 \le \varepsilon)",
    lower=0.0,
    upper=1.0,
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
    meaning="Squared loss up to which the attack takes a record for a member",
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
SAMPLE = Text(
    name="sample",
    symbol=r"N_1, N_2, \dots",
    grammar="{counts of the categories, such as 50,30,20, or column(file,name)}",
    canonical=canonical_sample,
    typical=("600,300,100", "40,30,20,10", "2000,500,100,50,20,10,5,5,1,1"),
    meaning="How often every category occurs among independent records of an unknown law",
)
TRUE_POSITIVES = Integer(
    name="true_positives",
    symbol="-",
    unit="records",
    lower=0,
    upper=10**9,
    typical=(9, 60, 800),
    meaning="Members that an attack takes for members",
)
MEMBERS = Integer(
    name="members",
    symbol="-",
    unit="records",
    lower=1,
    upper=10**9,
    typical=(10, 100, 1000),
    meaning="Members that an attack was tried on, each of a training run of its own",
)
FALSE_POSITIVES = Integer(
    name="false_positives",
    symbol="-",
    unit="records",
    lower=0,
    upper=10**9,
    typical=(0, 5, 40),
    meaning="Non-members that an attack takes for members",
)
NONMEMBERS = Integer(
    name="nonmembers",
    symbol="-",
    unit="records",
    lower=1,
    upper=10**9,
    typical=(100, 1000),
    meaning="Non-members that an attack was tried on, each of a training run of its own",
)
CONFIDENCE_LEVEL = Real(
    name="confidence_level",
    symbol=r"1 - \beta",
    lower=0.5,
    upper=1.0,
    upper_open=True,
    typical=(0.95, 0.99),
    meaning="Probability with which a bound that is computed from data holds",
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
    meaning="Law of a record; only the probabilities of its atoms matter, and that of a continuous part",
)
NONMEMBER_SHARE = Real(
    name="nonmember_share",
    symbol=r"\nu",
    lower=0.0,
    upper=1.0,
    lower_open=True,
    upper_open=True,
    typical=(0.5, 0.5, 0.25, 0.9),
    meaning="Probability that a tested record is a fresh one, which was not trained on",
)
MEMBER_WEIGHT = Real(
    name="member_weight",
    symbol=r"\lambda",
    lower=1e-3,
    upper=1e3,
    typical=(1.0, 1.0, 2.0),
    meaning="Weight of a member that is recognised; a fresh record that is recognised has the weight 1",
)
ATOM_PROBABILITY = Real(
    name="atom_probability",
    symbol="p",
    lower=1e-15,
    upper=1.0,
    typical=(1e-6, 1e-3, 0.1, 0.5, 0.9),
    meaning="Probability with which a record has the value of the attacked one",
)
RISK_LEVEL = Real(
    name="risk_level",
    symbol="q",
    lower=0.0,
    upper=1.0,
    lower_open=True,
    typical=(0.5, 0.9, 0.99, 1.0),
    meaning="Share of all records whose risk a quantile is not below; 1 asks for the largest risk",
)
FALSE_POSITIVE_RATE = Real(
    name="false_positive_rate",
    symbol="x",
    lower=0.0,
    upper=1.0,
    typical=(0.0, 0.001, 0.01, 0.1, 0.5),
    meaning="Probability with which an attack may take a fresh record for a member",
)
TARGET_ADVANTAGE = Real(
    name="target_advantage",
    symbol=r"\Delta",
    lower=1e-6,
    upper=1.0,
    typical=(0.01, 0.05, 0.1, 0.5),
    meaning="Largest advantage of an attack that is tolerated",
)
