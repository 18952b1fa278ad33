"""The script that takes the pictures of the lookup page."""

import pytest

from storage.table.shipped import VARIABLE
from tests.docs.screenshots import SCHEMES, page, picture
from tests.docs.test_readme import SMALL


@pytest.mark.soak
def test_the_pictures_of_the_page_are_small_and_differ_by_colour_scheme(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with page() as (address, browser):
        taken = [picture(address, browser, scheme) for scheme in SCHEMES]
    assert all(each[:4] == b"RIFF" and each[8:12] == b"WEBP" and len(each) < SMALL for each in taken)
    assert taken[0] != taken[1]
