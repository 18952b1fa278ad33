"""Hold dp-accounting against the test vectors: `python -m flows.vectors.against_dp_accounting [FILE]`."""

import json
import sys
from pathlib import Path

from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant

RELATIONS = {
    "add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
    "zero-out": NeighboringRelation.REPLACE_SPECIAL,
    "replace-one": NeighboringRelation.REPLACE_ONE,
}


def compare(file: Path) -> None:
    """Print the number of vectors, those that refute dp-accounting, and the largest distance."""
    factors: dict[str, float] = {}  # of the numbers outside of a bracket to its nearer end
    refuted: list[str] = []
    for vector in map(json.loads, file.read_text().splitlines()):
        name, question = vector["problem"], vector["question"]
        if not name.startswith(("poisson-", "unamplified-")) or question["adjacency"] not in RELATIONS:
            continue  # dp-accounting has no other sampling, and no single direction
        if question.get("epsilon", vector["upper"]) > 10:
            continue  # a larger epsilon takes it minutes
        step = GaussianDpEvent(question["sigma"])
        if name.startswith("poisson-"):
            step, steps = PoissonSampledDpEvent(question["sampling_probability"], step), question["steps"]
        else:
            steps = question["participations"]
        accountant = PLDAccountant(RELATIONS[question["adjacency"]])
        accountant.compose(SelfComposedDpEvent(step, steps * question["epochs"]))
        if name.endswith("-epsilon"):
            claimed = accountant.get_epsilon(question["delta"])
        else:
            claimed = accountant.get_delta(question["epsilon"])
        if claimed < vector["lower"]:  # its numbers are upper bounds
            refuted.append(vector["id"])
        factors[vector["id"]] = max(claimed / vector["upper"], vector["lower"] / max(claimed, 1e-300), 1)
    far = max(factors, key=factors.__getitem__)
    print(f"{len(factors)} checked, {len(refuted)} refuted: {', '.join(refuted) or 'none'}")
    print(f"largest distance from a bracket: a factor of {factors[far]:.4g}, at {far}")


if __name__ == "__main__":
    compare(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).with_name("vectors.jsonl"))
