"""The queries of the pages about papers: a store understands each of them before anything is computed."""

from pathlib import Path

import pytest

from storage import open_store
from tests.flows.small_store import point, store_of
from tests.flows.support.claims import ROOT, Claims

PAGES = sorted(path.name for path in (ROOT / "docs").glob("reproduction-*.md"))


@pytest.mark.thorough
@pytest.mark.parametrize("page", PAGES)
def test_every_query_of_a_page_can_be_asked(page: str, tmp_path: Path) -> None:
    stored = point("unamplified-epsilon", "unamplified.exact", sigma=1, delta=1e-5)
    queries = Claims(page).queries
    assert queries
    with open_store(store_of(tmp_path / "store", [stored])) as store:
        for _, printed, query in queries:
            found = store.sql(query)
            assert found.num_columns == len(printed.split(", ")), query
