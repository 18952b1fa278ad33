"""The Python reference has every public name."""

import re
from pathlib import Path

import privsweep


def test_the_reference_has_every_public_name_of_privsweep_and_no_other(repository: Path) -> None:
    page = (repository / "docs" / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"^\.\. auto(?:function|class|exception):: privsweep\.(\w+)$", page, re.MULTILINE)
    assert sorted(named) == sorted(privsweep.__all__)
