"""Neighbouring relations, with the names of dp-accounting."""

from enum import Enum


class Relation(Enum):
    """Difference of two neighbouring data sets."""

    ADD_OR_REMOVE_ONE = "ADD_OR_REMOVE_ONE"
    REPLACE_ONE = "REPLACE_ONE"
    REPLACE_SPECIAL = "REPLACE_SPECIAL"
    """The gradient of an example becomes 0; also known as zero-out."""
