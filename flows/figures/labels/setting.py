"""What tells one release from another: mechanism, bag size and epsilon."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

from flows.figures.labels.theme import power
from privcore.parameter import Value


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A mechanism with its parameters, without the prior."""

    mechanism: str
    bag_size: int = 1
    label_epsilon: float = math.inf

    @classmethod
    def of(cls, fields: Mapping[str, Value]) -> Self:
        """Return the setting of a problem with these fields."""
        return cls(
            mechanism=str(fields["mechanism"]),
            bag_size=int(fields["bag_size"]),
            label_epsilon=float(fields["label_epsilon"]),
        )

    @property
    def fields(self) -> dict[str, Value]:
        """Its parameters as fields of a problem."""
        return asdict(self)

    @property
    def label(self) -> str:
        r"""Its parameters in TeX, for a legend.

        Example:
            >>> print(Setting(mechanism="llp-geometric", bag_size=8, label_epsilon=0.5).label)
            $k = 8$, $\varepsilon = 0.5$
        """
        bags = [] if self.mechanism == "rr" else [f"$k = {self.bag_size}$"]
        noise = [rf"$\varepsilon = {power(self.label_epsilon)}$"] if math.isfinite(self.label_epsilon) else []
        return ", ".join([*bags, *noise])
