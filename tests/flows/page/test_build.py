import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from flows.page import build as building
from flows.page.build import build
from flows.page.stored import tables
from flows.page.tabs import TABS, Tab
from flows.spec.sweep import load
from privcore import PROBLEMS, Answer, DomainError, find, find_problem
from storage import Store, open_store
from storage.table.lookup_table import LookupTable, lookup_table, read_lookup_table
from tests.flows.small_store import Command
from tests.storage.made_up import put, row, rows

pytestmark = pytest.mark.sampled(3)

EXACT = ("abs", "ceil", "clz32", "floor", "fround", "imul", "max", "min", "round", "sign", "sqrt", "trunc")
"""Functions of Math whose results ECMAScript specifies to the last bit."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that no test changes."""
    folder = tmp_path_factory.mktemp("built")
    put(folder / "store", rows(5))
    return folder / "store"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.thorough
def test_the_same_store_gives_the_same_bytes_and_another_table_another_version(tmp_path: Path) -> None:
    root = tmp_path / "store"
    put(root, rows(5))
    with open_store(root) as store:
        first = build(store, tmp_path / "one")
        assert build(store, tmp_path / "two").version == first.version
        assert contents(tmp_path / "one") == contents(tmp_path / "two")
        put(root, rows(3, first=5))
        again = build(store, tmp_path / "one")
    assert (first.rows, again.rows) == (5, 8)
    assert first.version != again.version
    assert json.loads((tmp_path / "one" / "catalogue.json").read_text())["version"] == again.version
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "store", "two"]


def test_a_page_takes_the_place_of_nothing_but_a_page(root: Path, tmp_path: Path, privsweep: Command) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("")
    for out, sentence in [
        (tmp_path / "mine", "holds something else"),
        (tmp_path / "file", "got the file"),
        (root / "page", "inside the store"),
        ("s3://bucket/page", "got the address s3://bucket/page"),
    ]:
        assert privsweep("page", "build", "--store", root, "--out", out) == 2
        assert sentence in privsweep.err
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"


def test_what_somebody_put_beside_a_page_is_not_replaced_with_it(root: Path, tmp_path: Path) -> None:
    page, mine = tmp_path / "page", tmp_path / "mine"
    with open_store(root) as store:
        build(store, page)
        (page / ".git").mkdir()
        (page / ".git" / "HEAD").write_text("ref: refs/heads/pages")
        with pytest.raises(DomainError, match=r"holds something else: \.git/HEAD\."):
            build(store, page)
        mine.mkdir()
        (mine / "catalogue.json").write_text('{"books": 3}')
        with pytest.raises(DomainError, match=r"something else: catalogue\.json"):
            build(store, mine)
    assert (page / ".git" / "HEAD").exists()
    assert (mine / "catalogue.json").exists()


def test_an_interrupt_between_the_old_page_and_the_new_keeps_the_old_one(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        if path.name == "new":
            raise KeyboardInterrupt
        return rename(path, target)

    with open_store(root) as store:
        build(store, tmp_path / "page")
        before = contents(tmp_path / "page")
        monkeypatch.setattr(Path, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build(store, tmp_path / "page")
    assert contents(tmp_path / "page") == before
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


def test_a_page_shows_one_state_of_a_store_to_which_a_sweep_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "store"
    put(root, rows(5))

    def later(store: Store) -> LookupTable:
        put(root, rows(3, first=5))
        return lookup_table(store)

    monkeypatch.setattr(building, "lookup_table", later)
    with open_store(root) as store:
        assert build(store, tmp_path / "page").rows == 5
    assert len(read_lookup_table(tmp_path / "page" / building.PARQUET).rows) == 5


def test_a_disk_that_refuses_is_a_sentence(root: Path, tmp_path: Path, privsweep: Command) -> None:
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "page"
    assert privsweep("page", "build", "--store", root, "--out", out) == 2
    assert re.fullmatch(rf"privsweep: Cannot write {out}: [A-Za-z ]+\.\n", privsweep.err)


@pytest.mark.thorough
def test_the_command_tells_what_it_built(root: Path, tmp_path: Path, privsweep: Command) -> None:
    out = tmp_path / "page"
    assert privsweep("page", "build", "--store", root, "--out", out) == 0
    assert f"{out}: 5 rows of 1 problem, " in privsweep.out
    told = privsweep.told("page", "build", "--store", root, "--out", out)
    assert told["problems"] == {"unamplified-epsilon": 5}
    assert told["bytes"] == sum(map(len, contents(out).values()))


def test_every_problem_has_one_tab() -> None:
    shown = [kind.name for tab in TABS for kind in tab.problems]
    assert sorted(shown) == sorted(kind.name for kind in PROBLEMS)


def test_the_policy_of_the_page_allows_the_one_script_in_the_document(repository: Path) -> None:
    document = (repository / "flows" / "page" / "static" / "index.html").read_text(encoding="utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", document, re.DOTALL)
    known = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{known}';" in document


def test_the_document_names_the_tabs(repository: Path) -> None:
    document = (repository / "flows" / "page" / "static" / "index.html").read_text(encoding="utf-8")
    named = re.findall(r'id="tab-(\w+)"[^>]*>([^<]*)<', document)
    assert named[0] == ("run", "My training run")
    assert set(named[1:]) == {(tab.name, tab.title) for tab in TABS}


@pytest.mark.parametrize("tab", TABS, ids=lambda tab: tab.name)
def test_the_sweep_that_fills_a_tab_exists_and_asks_for_its_problems(tab: Tab) -> None:
    assert {grid.problem for grid in load(tab.sweep).grids} & set(tab.problems)


def test_the_page_names_no_other_server_and_builds_no_markup_from_text(repository: Path) -> None:
    static = repository / "flows" / "page" / "static"
    for path in (path for path in static.rglob("*") if path.is_file()):
        text = path.read_text()
        named = set(re.findall(r"https?://[^\s\"']+", text))
        assert named <= {"http://www.w3.org/2000/svg"}, path
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function", text
        ), path


def test_modules_of_the_engine_use_only_exactly_specified_functions(repository: Path) -> None:
    """The last bits of all other functions of Math, and of x ** y, differ between browsers."""
    modules = sorted((repository / "flows" / "page" / "static" / "engine").glob("*.js"))
    assert len(modules) > 10
    used = set()
    for path in modules:
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.DOTALL)
        used |= set(re.findall(r"\bMath\b(?:\.\w+)?", code))
        assert "**" not in code, path
    assert "Math.sqrt" in used
    assert used <= {f"Math.{name}" for name in EXACT}


@pytest.mark.thorough
def test_intervals_of_a_superseded_version_of_a_method_are_not_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = find("allocation.montecarlo")
    asked = find_problem("allocation-delta").from_fields({"sigma": 1.0, "steps": 10, "epsilon": 1.0})
    likely = Answer.enclosure(0.1, 0.2, confidence=0.99)
    with monkeypatch.context() as earlier:
        earlier.setattr(method, "version", method.version - 1)
        put(tmp_path / "store", row(asked, likely, method=method()))
    with open_store(tmp_path / "store") as store:
        assert tables(store) == []
    put(tmp_path / "store", row(asked, likely, method=method()))
    with open_store(tmp_path / "store") as store:
        (table,) = tables(store)
    assert (table.rows, table.stated["upper"]) == (1, [0.2])
