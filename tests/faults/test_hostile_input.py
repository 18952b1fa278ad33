"""Sweep files, fields, SQL and file names never reach a shell, a path outside the store, or an unpickler."""

import ast
import csv
import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.cli.app import run
from storage import StoreError, open_store
from storage.parts import parts
from storage.place.located import located
from tests.faults.tally import Tally
from tests.storage.made_up import epsilon, manifest, put, read_rows, row, rows
from tests.storage.test_parts import republish

pytestmark = pytest.mark.sampled(8)

SPEC = """
name = "{name}"
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = {{sigma = {sigma}, steps = {steps}, delta = {delta}, epochs = {epochs}}}
"""

Output = Callable[..., tuple[int, str, str]]


@pytest.fixture
def privsweep(capsys: pytest.CaptureFixture[str]) -> Output:
    """Run `privsweep ARGUMENTS` in this process; return code, standard output and standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(list(map(str, arguments)))
        return code, *capsys.readouterr()

    return call


def files_below(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder, with properties that change on writing; snapshots are left out."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in folder.rglob("*")
        if not path.is_dir() and "cache" not in path.relative_to(folder).parts
    }


# ------------------------------------------------------------------------------ sizes


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("axes", "points"),
    [
        ({"sigma": "{linear = [1, 2, 1_000_000]}", "delta": "{linear = [0.1, 0.2, 1_000_000]}"}, 10**12),
        ({"steps": "{range = [1, 1_000_000_000, 1]}", "sigma": "{geometric = [1, 9, 1000]}"}, 10**12),
        ({"sigma": "{range = [1, 2, 1e-12]}"}, 10**12 + 1),
        (
            {"sigma": "{linear = [1, 2, 999_983]}", "delta": "{linear = [0.1, 0.2, 1_000_003]}"},
            999983 * 1000003,
        ),
    ],
    ids=["product", "integers", "range", "primes"],
)
def test_a_trillion_points_are_counted_exactly_and_refused_at_once(
    faults: Tally, tmp_path: Path, axes: dict[str, str], points: int
) -> None:
    """T19: plan counts 10^12 points in 200 MB without visiting them, and rejects them above --max-points."""
    spec = tmp_path / "big.toml"
    given = {"name": "big", "sigma": "1", "steps": "1", "delta": "1e-5", "epochs": "1"} | axes
    spec.write_text(SPEC.format(**given))
    script = (
        "import json, pathlib, sys, time; from flows.cli.app import run; code = run(sys.argv[1:]);"
        "peak = pathlib.Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0];"
        "print(json.dumps([code, int(peak) * 1024, time.process_time()]), file=sys.stderr)"
    )
    with faults.trial():
        command = [
            sys.executable,
            "-c",
            script,
            "plan",
            str(spec),
            "--json",
            "--store",
            str(tmp_path / "store"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        code, peak, seconds = json.loads(done.stderr.splitlines()[-1])
        assert code == 2
        assert json.loads(done.stdout)["points"] == points
        assert f"{points:,} points" in done.stderr
        assert "more than --max-points 1e+06" in done.stderr
        assert peak < 200e6
        assert seconds < 20.0, "processor seconds; visiting each point would take days"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["big.toml"]


# ------------------------------------------------------------------------------ paths


TRAVERSALS = [
    "../../etc/passwd",
    "/etc/passwd",
    "a\0b",
    "x" * 300,
    "s3://bucket/x",
    "..",
    "~root",
    "$(id)",
    "`id`",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TRAVERSALS)
def test_a_path_for_the_name_of_a_sweep_is_refused(
    faults: Tally, tmp_path: Path, privsweep: Output, name: str
) -> None:
    """T22: a sweep's name that is a path, a command, or far too long."""
    spec = tmp_path / "spec.toml"
    written = json.dumps(name)[1:-1]
    spec.write_text(SPEC.format(name=written, sigma="1", steps="1", delta="1e-5", epochs="1"))
    with faults.trial():
        code, out, err = privsweep("run", spec, "--engine", "serial", "--store", tmp_path / "store")
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert "name" in err
        assert len(err) < 600
        assert sorted(path.name for path in tmp_path.iterdir()) == ["spec.toml"]


NO_FOLDERS = [
    "a\0b",
    "x" * 300,
    "a?b",
    "file:x?mode=memory",
    "s3://bucket/x",
    "gs://bucket",
    "http://host/x",
    "s3://" + "x" * 300,
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("store", NO_FOLDERS)
def test_an_address_for_the_folder_of_a_store_is_refused(
    faults: Tally, tmp_path: Path, privsweep: Output, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    """T22: a store whose name is impossible for a folder, or an address; no folder is created instead."""
    monkeypatch.chdir(tmp_path)
    Path("spec.toml").write_text(SPEC.format(name="t", sigma="1", steps="1", delta="1e-5", epochs="1"))
    with faults.trial():
        for command in (["sql", "from results"], ["run", "spec.toml", "--engine", "serial"]):
            code, out, err = privsweep(*command, "--store", store)
            assert code == 2, out
            assert err.count("\n") == 1, err
        assert sorted(path.name for path in tmp_path.iterdir()) == ["spec.toml"]


ODD_NAMES = [
    "it's; drop table results; --",
    'say "x"',
    "a*b[c]",
    "100%{x}",
    "$HOME",
    "a b\tc",
    "\u00e9\u2014\u202e",
    "-rf",
    "#hash",
    "md:cloud",
    ":memory:",
    "file:x",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_store_works_in_a_folder_of_any_name(
    faults: Tally, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """T22: a folder whose name is SQL, a pattern, or an address to a library; absolute and relative."""
    monkeypatch.chdir(tmp_path)
    with faults.trial():
        for root in (Path(name), tmp_path / name):
            put(root, rows(3))
            with open_store(root) as store:
                assert store.sql("from results").num_rows == 3
                found = store.lookup(epsilon())
                assert found is not None
                assert found.exact
                assert store.verify() == []
            assert list((root / "cache").glob("*.duckdb")), "the snapshot is where it should be"
        assert [path.name for path in tmp_path.iterdir()] == [name]


def test_links_in_a_store_lead_nobody_to_write_or_delete_outside(
    faults: Tally, root: Path, tmp_path: Path
) -> None:
    """T22: links to files outside in place of parts, folders and leftovers."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("precious")
    old = outside / "old"
    old.mkdir()
    (old / "precious.txt").write_text("precious")
    put(root, rows(3))
    before = files_below(outside)
    links = [
        root / ".a.tmp",
        root / "data" / ".b.tmp",
        root / "data" / "problem=unamplified-epsilon" / ".c.tmp",
    ]
    for link in links:
        link.symlink_to(old)
        os.utime(link, (1, 1), follow_symlinks=False)
    for path in (old, old / "precious.txt"):
        os.utime(path, (1, 1))
    before = files_below(outside)
    with faults.trial():
        open_store(root, create=True).close()
        assert files_below(outside) == before
    for link in links:
        link.unlink(missing_ok=True)
    for place in (
        root / "data" / "problem=linked",
        root / "data" / "problem=unamplified-epsilon" / "x.parquet",
    ):
        with faults.trial():
            place.symlink_to(outside if "linked" in place.name else outside / "precious.txt")
            with open_store(root) as store, pytest.raises(StoreError, match="is not part of the store"):
                store.sql("from results")
            assert files_below(outside) == before
            place.unlink()
    faults.compare(root, {r.point.id for r in rows(3)})


def test_a_manifest_that_lists_files_outside_leads_nobody_there(
    faults: Tally, root: Path, tmp_path: Path, privsweep: Output
) -> None:
    """T22: a manifest that names a path outside as a part; maintenance leaves that file alone."""
    from storage import write_manifest

    secret = tmp_path / "secret.parquet"
    part = put(root, rows(3))
    secret.write_bytes(part.read_bytes())
    path = write_manifest(located(root), manifest(part))
    content = json.loads(path.read_text())
    content["parts"] = ["../../secret.parquet", str(secret)]
    path.write_text(json.dumps(content))
    before = files_below(tmp_path)
    with faults.trial():
        code, _, err = privsweep("sql", "from results", "--store", root)
        assert code == 2
        assert "secret.parquet" in err
    for command in (["verify"], ["gc"], ["compact"], ["repair"]):
        with faults.trial():
            assert privsweep(*command, "--store", root)[0] in (0, 1, 2)
            assert files_below(tmp_path)["secret.parquet"] == before["secret.parquet"]


# ------------------------------------------------------------------------------ SQL

INJECTIONS = [
    "'; COPY (SELECT 1) TO '/tmp/x.csv'; --",
    "1) UNION SELECT * FROM read_csv('/etc/passwd') --",
    "1; ATTACH '/tmp/x.db'; --",
    "1; INSTALL httpfs; --",
    "1' OR '1'='1",
    '"; DROP VIEW results; --',
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", INJECTIONS)
def test_sql_in_a_field_is_a_wrong_value_and_nothing_else(
    faults: Tally, root: Path, privsweep: Output, text: str
) -> None:
    """T23: SQL in place of a number, a word, a problem and a name."""
    put(root, rows(3))
    before = files_below(root)
    questions = [
        ["lookup", "unamplified-epsilon", f"sigma={text}", "delta=1e-5"],
        ["lookup", "unamplified-epsilon", "sigma=1", "delta=1e-5", f"adjacency={text}"],
        ["lookup", "unamplified-epsilon", f"{text}=1"],
        ["lookup", text],
        ["status", text],
    ]
    for question in questions:
        with faults.trial():
            code, out, err = privsweep(*question, "--store", root)
            assert (code, out) == (2, "")
            assert err.startswith("privsweep: ")
            assert err.count("\n") == 1
            assert files_below(root) == before
    faults.compare(root, {r.point.id for r in rows(3)})


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "query",
    [
        "COPY results TO '{outside}'",
        "COPY (SELECT 1) TO '{root}/data/x.parquet'",
        "ATTACH '{outside}'",
        "ATTACH '{root}/cache/x.duckdb'",
        "INSTALL httpfs",
        "LOAD json",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "SET lock_configuration = false",
        "from read_csv('/etc/passwd')",
        "from read_text('/proc/self/environ')",
        "from '/etc/passwd'",
        "from glob('/*')",
        "select getenv('HOME')",
        "EXPORT DATABASE '{outside}'",
        "select 1; COPY results TO '{outside}'",
        "CREATE MACRO epsilon_at(x) AS 0",
        "CREATE OR REPLACE VIEW best AS SELECT 1",
        "from duckdb_secrets()",
    ],
)
def test_the_sql_console_reads_the_views_and_writes_nothing(
    faults: Tally, root: Path, tmp_path: Path, privsweep: Output, query: str
) -> None:
    """T23: statements that read or write files, load code, or change the settings."""
    put(root, rows(3))
    before = files_below(tmp_path)
    with faults.trial():
        code, out, err = privsweep(
            "sql", query.format(root=root, outside=tmp_path / "x.out"), "--store", root
        )
        empty = "secrets" in query and code == 0 and len(out.splitlines()) <= 1
        assert empty or (code == 2 and not out), out
        assert "Traceback" not in err
        assert files_below(tmp_path) == before
        assert not [p for p in (root / "cache").rglob("*") if not p.name.startswith("snapshot-")]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from range(1000000) a, range(1000000) b where (a.range + b.range) % 7 = 8",
        "with recursive t(n) as (select 1 union all select n + 1 from t) select max(n) from t",
        "select a.range from range(1000000000) a, range(1000) b where (a.range + b.range) % 7 = 8",
    ],
    ids=["cross join", "recursion", "stream"],
)
def test_a_query_without_end_is_stopped_with_code_four_and_the_store_goes_on(
    faults: Tally, root: Path, privsweep: Output, query: str
) -> None:
    """T24: a scan of 10^12 rows, and a recursion that never ends."""
    put(root, rows(3))
    with faults.trial():
        assert privsweep("sql", "select 1 as one", "--store", root)[0] == 0
        code, out, err = privsweep("sql", query, "--store", root, "--limit-seconds", "0.5")
        assert (code, out) == (4, "")
        assert err == "privsweep: The query took longer than 0.5 s.\n"
        with faults.recovery():
            assert (
                privsweep("sql", "select count(*) as n from results", "--store", root, "--csv")[1] == "n\n3\n"
            )


# ------------------------------------------------------------------------------ texts

TEXTS = [
    "=cmd|'/c calc'!A1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "<script>alert(1)</script>",
    "a,b\n=c",
    'x";=1',
    "\x1b[2J",
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("texts", [TEXTS, ["\r=1", "a\r=1"]], ids=["", "\\r"])
def test_texts_in_csv_are_no_formulas(faults: Tally, root: Path, privsweep: Output, texts: list[str]) -> None:
    """T25: details that a spreadsheet would execute as formulas."""
    from privcore import Answer

    put(
        root, [row(epsilon(sigma=1 + i), Answer.enclosure(1, 2, detail=text)) for i, text in enumerate(texts)]
    )
    with faults.trial(len(texts)):
        code, out, _ = privsweep("sql", "select detail from results order by sigma", "--store", root, "--csv")
        assert code == 0
        cells = [cell for (cell,) in csv.reader(io.StringIO(out, newline=""))][1:]
        assert len(cells) == len(texts)
        for cell, text in zip(cells, texts, strict=True):
            assert not cell.lstrip("\t\r\n ").startswith(("=", "+", "-", "@")), repr(cell)
            assert text in cell or text.strip() in cell


@pytest.mark.parametrize(
    "title", ["<script>alert(1)</script>", "=cmd()", "\x1b[2Jhidden", "a\u202eb", "a\nb"]
)
def test_a_title_is_shown_as_text_or_refused(
    faults: Tally, tmp_path: Path, privsweep: Output, title: str
) -> None:
    """T25: markup, a formula, or control characters in a sweep's title."""
    spec, root = tmp_path / "spec.toml", tmp_path / "store"
    text = SPEC.format(name="t", sigma="1", steps="1", delta="1e-5", epochs="1")
    escaped = "".join(c if c.isprintable() and c != '"' else f"\\u{ord(c):04x}" for c in title)
    spec.write_text(f'title = "{escaped}"\n' + text)
    with faults.trial():
        code, out, err = privsweep("plan", spec, "--store", root)
        assert code == (0 if title.isprintable() else 2)
        assert not any(not c.isprintable() and c != "\n" for c in out + err)


# ------------------------------------------------------------------------------ code in data

UNPICKLERS = {"pickle", "cPickle", "cloudpickle", "dill", "shelve", "marshal", "joblib", "jsonpickle", "yaml"}
RUN_BY_PYTHON = {"eval", "exec", "compile", "__import__"}
ALLOWED = {
    # Between a process and its own child, through a pipe without any file or network.
    "flows/page/clerk.py: multiprocessing.connection",
    "tasks/guard.py: multiprocessing.connection",
}


def ways_to_run_data(module: Path) -> set[str]:
    """Names in a module that could turn bytes into code, or text into a command."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            found |= {n for n in names if n.split(".")[0] in UNPICKLERS or n == "multiprocessing.connection"}
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            keywords = {k.arg: ast.unparse(k.value) for k in node.keywords}
            risky = called in RUN_BY_PYTHON or called in (
                "os.system",
                "os.popen",
                "read_pickle",
                "pd.read_pickle",
            )
            if risky or keywords.get("shell") == "True" or keywords.get("allow_pickle") == "True":
                found.add(called)
    return found


def test_no_module_unpickles_evaluates_or_calls_a_shell(faults: Tally, repository: Path) -> None:
    """T26: no unpickler, eval or shell in any module; the contents of queries and specs stay data."""
    with faults.trial():
        found = {
            f"{module.relative_to(repository)}: {way}"
            for package in ("flows", "tasks", "storage", "privcore", "privsweep")
            for module in sorted((repository / package).rglob("*.py"))
            for way in ways_to_run_data(module)
        }
        assert found == ALLOWED


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch '{self.target}'",)


def harmful(target: Path) -> bytes:
    return pickle.dumps(Bomb(target))


def test_a_pickle_in_the_store_is_never_loaded(faults: Tally, root: Path, tmp_path: Path) -> None:
    """T26: pickles in place of a part, a manifest or the marker file, and in the metadata of a valid part."""
    target = tmp_path / "executed"
    bomb = harmful(target)
    pickle.loads(bomb)  # the pickle does run code if it is loaded
    assert target.exists()
    target.unlink()
    part = f"data/problem=unamplified-epsilon/{'0' * 32}-{'0' * 64}.parquet"
    for place in (part, "store.json", f"sweeps/{'0' * 32}.json"):
        with faults.trial():
            here = root.with_name(place.split("/")[0])
            put(here, rows(2))
            (here / place).parent.mkdir(exist_ok=True)
            (here / place).write_bytes(bomb)
            with pytest.raises(StoreError, match=r"damaged"), open_store(here) as store:
                store.sql("from results")
            assert not target.exists()


@pytest.mark.parametrize(
    "name", ["arrow.py_extension_type", "arrow.bool8", "arrow.json", "unknown.extension"]
)
def test_a_pickle_in_the_type_of_a_column_is_never_loaded(
    faults: Tally, root: Path, tmp_path: Path, name: str
) -> None:
    """T26: the extension type through which old versions of Arrow ran code (CVE-2023-47248)."""
    target = tmp_path / "executed"
    part = put(root, rows(2))
    table = pq.read_table(part, partitioning=None)
    index = table.column_names.index("detail")
    marked = table.schema.field(index).with_metadata(
        {"ARROW:extension:name": name, "ARROW:extension:metadata": harmful(target)}
    )
    odd = republish(part, pa.Table.from_arrays(table.columns, schema=table.schema.set(index, marked)))
    with faults.trial():
        try:
            assert len(read_rows(odd)) == 2
        except StoreError as error:
            assert odd.name in error.args[0]  # noqa: PT017  refusing it by name is as good
        with open_store(root) as store:
            assert all(str(odd) in sentence for sentence in store.verify())
        assert not target.exists()
    assert parts(located(root)) == [odd]


def test_python_objects_in_a_sweep_file_are_text(faults: Tally, tmp_path: Path, privsweep: Output) -> None:
    """T26: tags of YAML and pickles in a sweep file."""
    target = tmp_path / "executed"
    spec = tmp_path / "spec.toml"
    for content in (
        f"name: !!python/object/apply:os.system ['touch {target}']".encode(),
        f'name = "!!python/object/apply:os.system"\ncall = "touch {target}"'.encode(),
        harmful(target),
    ):
        with faults.trial():
            spec.write_bytes(content)
            code, out, err = privsweep("plan", spec, "--store", tmp_path / "store")
            assert (code, out) == (2, "")
            assert err.count("\n") == 1
            assert sorted(path.name for path in tmp_path.iterdir()) == ["spec.toml"]
