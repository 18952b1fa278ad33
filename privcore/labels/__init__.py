"""Label inference: the information about each label in a release of noisy or aggregated labels."""

from privcore.labels.bag_problems import BagAdvantage, BagPosterior, ClassAdvantage
from privcore.labels.problems import (
    LabelAdvantage,
    LabelAdvantageAt,
    LabelAdvantageTail,
    LabelAttackAccuracy,
    LabelRatioInfinite,
    LabelRatioQuantile,
    LabelRatioTail,
)

__all__ = [
    "BagAdvantage",
    "BagPosterior",
    "ClassAdvantage",
    "LabelAdvantage",
    "LabelAdvantageAt",
    "LabelAdvantageTail",
    "LabelAttackAccuracy",
    "LabelRatioInfinite",
    "LabelRatioQuantile",
    "LabelRatioTail",
]
