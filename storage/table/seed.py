"""Current rows of the shipped table, to make the next one: `python -m storage.table.seed FOLDER`."""

import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from privcore import METHODS
from storage.place.located import located
from storage.table.lookup_table import LookupTable, import_lookup_table, read_lookup_table
from storage.table.shipped import shipped_file


def current(table: LookupTable) -> LookupTable:
    """Return the rows of a table whose method still has the version that computed them."""
    versions = {method.name: method.version for method in METHODS}
    used = zip(table.rows["method"].to_pylist(), table.rows["method_version"].to_pylist(), strict=True)
    return replace(table, rows=table.rows.filter(pa.array([versions.get(name) == of for name, of in used])))


def main() -> None:
    """Copy the current rows of the shipped table into a store; `run lookup` computes the others."""
    (folder,) = map(Path, sys.argv[1:])
    path = shipped_file()
    if path is None:
        print("no table is shipped: `run lookup` computes all rows")
        return
    table = read_lookup_table(path)
    kept = current(table)
    import_lookup_table(kept, located(folder), checked=False)
    print(f"{len(kept.rows)} of {len(table.rows)} rows of {table.version} are current and kept")


if __name__ == "__main__":
    main()
