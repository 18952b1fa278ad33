"""Made-up rows of a real problem, 100,000 at a time, for stores of a realistic size."""

from typing import Any

import numpy as np
import pyarrow as pa

from privcore import find, find_problem
from storage import to_table
from storage.schema import schema_for
from tests.storage.made_up import row

AllocationEpsilon = find_problem("allocation-epsilon")
SIGMAS = np.geomspace(0.3, 30, 100)
STEPS = np.unique(np.geomspace(10, 1e6, 40).astype(np.int64))
DELTAS = np.geomspace(1e-12, 1e-3, 25)
PARTICIPATIONS = np.arange(1, 11)
EPOCHS = np.arange(1, 11)


def made_up_part(sigma: float) -> pa.Table:
    """Return all rows of one sigma: 100,000 points of a grid, with ends around a monotone function."""
    axes = np.meshgrid(STEPS, DELTAS, PARTICIPATIONS, EPOCHS, indexing="ij")
    steps, delta, participations, epochs = (axis.ravel() for axis in axes)
    size = len(steps)
    truth = np.sqrt(np.log(1 / delta) * participations * epochs / steps) / sigma
    fields = {"sigma": np.full(size, sigma), "steps": steps, "delta": delta}
    fields |= {"participations": participations, "epochs": epochs}
    letters = (
        np.random.default_rng(int(sigma * 1e9)).bytes(16 * size).hex()
    )  # hard to compress, as hashes are
    ids = [letters[32 * i : 32 * i + 32] for i in range(size)]
    own = fields | {"lower": truth * 0.99, "upper": truth * 1.01, "point_id": ids, "problem_id": ids}
    some = AllocationEpsilon.from_fields({"sigma": 1.0, "steps": 10, "delta": 1e-5})
    (one,) = to_table([row(some, method=find("allocation.certified")())]).to_pylist()
    schema = schema_for(AllocationEpsilon)
    columns = [
        pa.array(own[f.name], f.type) if f.name in own else _constant(one[f.name], f.type, size)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _constant(value: Any, kind: pa.DataType, size: int) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(np.zeros(size, np.int32), pa.array([value]))
    return pa.repeat(pa.scalar(value, kind), size)
