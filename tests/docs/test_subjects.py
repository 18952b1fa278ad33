"""Subjects of commits."""

import pytest

from tests.docs.subjects import wrong


@pytest.mark.parametrize(
    "subject",
    [
        "Drop subnormal atoms from lower distributions",
        "Embed the sweep of the lookup table",
        "Pass the noise multiplier to the accountant",
        "Bring back the exit code of an interrupted run",
    ],
)
def test_an_imperative_is_right(subject: str) -> None:
    assert wrong(subject) is None


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        ("Dropped atoms", "not an imperative"),
        ("Dropping atoms", "not an imperative"),
        ("Drops atoms", "not an imperative"),
        ("drop atoms", "not an imperative"),
        ("Drop atoms.", "full stop"),
        ("Drop " + "a" * 68, "73 characters"),
    ],
)
def test_anything_else_is_wrong(subject: str, reason: str) -> None:
    assert reason in str(wrong(subject))
