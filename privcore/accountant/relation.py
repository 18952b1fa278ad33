"""Neighbouring relations, with the names of dp-accounting."""

from enum import Enum


class Relation(Enum):
    """Difference of two neighbouring data sets."""

    ADD_OR_REMOVE_ONE = "ADD_OR_REMOVE_ONE"
    REPLACE_ONE = "REPLACE_ONE"
    REPLACE_SPECIAL = "REPLACE_SPECIAL"
    """The gradient of an example becomes 0; also known as zero-out."""

    @property
    def short(self) -> str:
        """Name of the relation in this package."""
        return _SHORT[self]


_SHORT = {
    Relation.ADD_OR_REMOVE_ONE: "add-remove",
    Relation.REPLACE_ONE: "replace-one",
    Relation.REPLACE_SPECIAL: "zero-out",
}
