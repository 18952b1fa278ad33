"""A notebook in a real kernel: answers and tables are HTML, and a run shows one bar."""

import math
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import polars as pl
import pytest
from nbclient import NotebookClient

import privsweep as ps
from flows.runs.progress import NotebookBar
from privcore import Answer
from storage.table.shipped import FOLDER, VARIABLE
from tests.storage.made_up import epsilon, put, row

GRID = """
grid = {"problem": "unamplified-epsilon", "methods": ["unamplified.exact"]}
grid["product"] = {"sigma": [0.5 + k / 100 for k in range(200)], "delta": 1e-5}
"""
CELLS = (
    "import privsweep as ps",
    'ps.epsilon(sigma=1.0, delta=1e-5, sampling="none")',
    'ps.noise(epsilon=1.0, delta=1e-5, sampling="none")',
    "ps.compare(sigma=1.0, steps=100, delta=1e-6)",
    f'{GRID}\nreport = ps.run({{"name": "two", "grid": [grid]}}, "mine", engine="ENGINE")',
    f'{GRID}\nps.run({{"name": "two", "grid": [grid]}}, "mine", engine="ENGINE").computed',
    """ps.sql("select sigma, upper, '<script>' as word from best order by all limit 2", "mine")""",
    'with ps.open_store("mine") as store: frame = store.best("unamplified-epsilon", "pandas")\nframe',
    'with ps.open_store("mine") as store: frame = store.frame("best", "polars")\nframe',
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The path of a store that does not exist yet."""
    return tmp_path / "store"


def played(cells: Sequence[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """Run the cells in a new kernel in a folder; return the outputs of each."""
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(folder / name.lower()))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    (folder / "work").mkdir()
    kinds: Any = nbformat.v4
    written = kinds.new_notebook(cells=[kinds.new_code_cell(cell) for cell in cells])
    where = {"metadata": {"path": str(folder / "work")}}
    done = NotebookClient(written, timeout=300, resources=where).execute()
    nbformat.validate(done)
    return [cell.outputs for cell in done.cells]


@pytest.mark.thorough
def test_the_notebook_of_the_documentation_runs_from_a_run_to_a_query(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: Any = nbformat.read
    whole = read(repository / "docs" / "notebooks" / "run.ipynb", as_version=4)
    cells = [cell for cell in whole.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in cells), "outputs are not committed"
    answer, statement, curve, rows, computed, query = played(
        [cell.source for cell in cells], tmp_path, monkeypatch
    )
    bound = ps.epsilon(sampling="poisson", sigma=1.1, examples=60000, batch_size=256, epochs=10, delta=1e-5)
    assert answer[-1].data["text/plain"] == repr(bound)
    assert statement[0].text == bound.statement() + "\n"
    assert curve[0].data["image/svg+xml"].count(">Poisson<") == 1
    assert set(re.findall(r"(?m)^[a-z-]+", rows[0].data["text/plain"])) >= {"allocation", "poisson", "none"}
    assert computed[-1].data["text/plain"] == "8"
    assert query[0].data["text/html"].count("<tr>") == 5


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["serial", "ray"])
def test_a_notebook_shows_answers_tables_and_one_bar(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [cell.replace("ENGINE", engine) for cell in CELLS]
    outputs = played(cells, tmp_path, monkeypatch)
    printed = [output.text for cell in outputs for output in cell if output.output_type == "stream"]
    assert printed == []
    imported, bound, noise, compared, bar, again, table, pandas, polars = outputs
    assert imported == []
    assert [output.output_type for output in bar] == ["display_data"]
    assert '<progress value="200" max="200"></progress> 200 of 200 points' in bar[0].data["text/html"]
    assert bar[0].data["text/plain"] == "computing 200 of 200 points, 0 are stored: 200 of 200 points"
    assert [output.data["text/plain"] for output in again] == ["0"]  # and no bar
    for (output,) in (bound, noise, compared, table, pandas, polars):
        assert "<table" in output.data["text/html"]
    assert "&lt;script&gt;" in table[0].data["text/html"]
    assert "<script>" not in table[0].data["text/html"]
    assert "2 rows from the store mine" in table[0].data["text/html"]


@pytest.mark.thorough
def test_a_program_shows_lines_and_not_the_bar_of_a_notebook(tmp_path: Path) -> None:
    cells = [CELLS[0], CELLS[4].replace("ENGINE", "serial")]
    command = [sys.executable, "-c", "\n".join(cells)]
    ended = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert ended.stdout == ""
    assert ended.stderr == "computing 200 of 200 points, 0 are stored\nin this process\n"


def test_a_bar_is_html_and_text_without_markup_of_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    pictures: list[Any] = []
    bar = NotebookBar("2 < 3", 7)
    monkeypatch.setattr(bar, "_output", SimpleNamespace(update=lambda data, **_: pictures.append(data)))
    bar.show(0, " (starting <Ray>)")
    for finished in range(1, 8):
        bar.show(finished, f", {7 - finished} s left")
    bar.stop()
    assert len(pictures) == 3, "the start, the first points, the end"
    assert pictures[0]["text/html"].startswith("<div>2 &lt; 3<br>")
    assert "(starting &lt;Ray&gt;)" in pictures[0]["text/html"]
    assert pictures[-1]["text/plain"] == "2 < 3: 7 of 7 points, 0 s left"


def test_every_cell_and_name_of_a_table_is_escaped(root: Path) -> None:
    put(root, row(epsilon(), Answer(lower=0.5, upper=math.inf)))
    table = ps.sql("""select '<b>&' as "<i>", upper, null as nothing from best""", root)
    html = table._repr_html_()
    assert not re.search(r"<(?!/?(table|tr|td|th|caption)[ >])", html)
    assert html.count("&lt;b&gt;&amp;") == html.count("&lt;i&gt;") == 1
    assert repr(table).splitlines()[1:] == ["<i>   upper  nothing", "<b>&    inf"]


def test_a_long_table_shows_its_first_rows_and_has_all(root: Path) -> None:
    put(root, row(epsilon()))
    table = ps.sql("from range(120)", root)
    assert (len(table), table.arrow.num_rows, len(pl.DataFrame(table))) == (120, 120, 120)
    assert table._repr_html_().count("<tr>") == 1 + 50
    assert repr(table).splitlines()[0] == f"the first 50 of 120 rows from the store {root}"
    assert table.frame("polars")["range"].sum() == table.frame("pandas")["range"].sum() == 7140


@pytest.mark.thorough
def test_a_query_without_a_store_reads_the_shipped_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(max(FOLDER.glob("lookup-*.parquet"))))
    monkeypatch.chdir(tmp_path)
    table = ps.sql("select count(*) as n from best")
    assert table.source.startswith("the shipped table ")
    assert table.arrow["n"].to_pylist()[0] > 10_000
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x")
    with pytest.raises(ps.PrivsweepError, match="is not a store"):
        ps.sql("from best", tmp_path / "other")


def test_a_store_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ps.PrivsweepError, match="No store found"):
        ps.sql("from best", tmp_path / "none")
    with pytest.raises(ps.PrivsweepError, match="No store found"):
        ps.epsilon(sigma=1.0, delta=1e-5, sampling="none", store=tmp_path / "none")


def test_a_noise_is_shown_with_the_safe_side_of_both_ends() -> None:
    found = ps.noise(epsilon=1.0, delta=1e-5, sampling="none")
    cells = re.findall(r"<td[^>]*>([^<]*)", found._repr_html_())
    assert cells[:4] == ["3.7321", "suffices", "at most 0.999568", "unamplified.exact"]
    assert float(cells[2].split()[-1]) >= found.enough.upper
    assert found.short is not None
    assert float(cells[6].split()[-1]) <= found.short.lower
