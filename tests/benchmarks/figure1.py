"""Figure 1's grid by our methods and by the methods of random-allocation; a section of bench.py."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
STEPS, DELTA = 10**6, 1e-10
SIGMAS = [0.2 * 10.0 ** (i / 19) for i in range(20)]
LIMIT_SECONDS = 3000
PAPER_METHODS = ["allocation.direct", "allocation.recursive", "allocation.decomposition"]
OWN_METHODS = ["allocation.certified", *PAPER_METHODS]
OWN_METHODS += ["unamplified.exact", "poisson.certified", "shuffling.clones"]


def table() -> Iterator[str]:
    """Yield our brackets on figure 1's grid, the peer's best bounds, and the seconds of every method."""
    ours = json.loads(_output([sys.executable, __file__], LIMIT_SECONDS))
    script = Path(__file__).with_name("peer_random_allocation.py")
    arguments = [str(STEPS), str(DELTA), *map(str, SIGMAS)]
    theirs = (
        [
            json.loads(x)
            for x in _output([str(PEERS), str(script), *arguments], LIMIT_SECONDS).splitlines()
            if x[0] == "{"
        ]
        if PEERS.exists()
        else []
    )
    peer = {(row["method"], row["sigma"]): row for row in theirs}
    own = {(row["method"], row["sigma"]): row for row in ours}
    yield (
        "| sigma | our bracket | our versions of the paper's bounds | peer's | peer's upper end over ours "
        "| Poisson: our bracket | peer's |"
    )
    yield "|---" * 7 + "|"
    for sigma in SIGMAS:
        bracket = own["allocation.certified", sigma]
        paper = min(own[name, sigma]["upper"] for name in PAPER_METHODS)
        found = [peer[name, sigma]["epsilon"] for name in PAPER_METHODS if (name, sigma) in peer]
        best = f"{min(found):.5g}" if found else "none"
        ratio = f"{min(found) / bracket['upper']:.2f}" if found else ""
        poisson = own["poisson.certified", sigma]
        row = [f"{sigma:.4f}", _ends(bracket), f"{paper:.5g}", best, ratio, _ends(poisson)]
        if ("poisson.certified", sigma) in peer:
            value = peer["poisson.certified", sigma]["epsilon"]
            row.append(f"{value:.5g}" + (", below the truth" if value < poisson["lower"] else ""))
        yield "| " + " | ".join(row) + " |"
    yield ""
    yield f"Seconds for the {len(SIGMAS)} points of a method:"
    yield ""
    yield "| method | ours | peer | ratio |"
    yield "|---|---|---|---|"
    for name in dict.fromkeys(name for name, _ in own):
        mine = sum(row["seconds"] for (method, _), row in own.items() if method == name)
        found = [row["seconds"] for (method, _), row in peer.items() if method == name]
        if not found:
            yield f"| {name} | {mine:.2f} | | |"
            continue
        more = "" if len(found) == len(SIGMAS) else f" ({len(found)} points within the limit)"
        yield f"| {name} | {mine:.2f} | {sum(found):.1f}{more} | {sum(found) / mine:.0f} |"


def _ends(bracket: dict[str, float]) -> str:
    return f"{bracket['lower']:.5g} - {bracket['upper']:.5g}"


def main() -> None:
    """Print our methods on the grid with seconds as JSON; runs in a separate process."""
    from privcore import Point, evaluate, find, find_problem
    from privcore.allocation.poisson import poisson
    from privcore.allocation.reduction import one_of

    scheme = {"sigma": 1.0, "steps": 7, "delta": 1e-3}
    found = []
    for name in OWN_METHODS:
        method = find(name)()
        topic = {"unamplified": "unamplified", "poisson": "poisson", "shuffling": "shuffling"}.get(
            name.split(".")[0], "allocation"
        )
        problem = find_problem(f"{topic}-epsilon")
        rate = {"sampling_probability": 1.0 / STEPS} if topic == "poisson" else {}
        evaluate(Point(problem=problem.from_fields(scheme | rate), method=method))  # load compiled code
        one_of.cache_clear()
        poisson.cache_clear()  # one method must not profit from the caches of another
        for sigma in SIGMAS:
            fields = {"sigma": sigma, "steps": STEPS, "delta": DELTA} | rate
            started = time.process_time()
            answer = evaluate(Point(problem=problem.from_fields(fields), method=method))
            seconds = time.process_time() - started
            upper = answer.upper if answer.value is None else answer.value
            row = {"method": name, "sigma": sigma, "lower": answer.lower, "upper": upper}
            found.append(row | {"seconds": seconds})
    print(json.dumps(found))


def _output(command: list[str], limit: float) -> str:
    """Return the lines that a process printed before its end or the limit."""
    with tempfile.TemporaryFile("w+") as printed:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, stdout=printed, timeout=limit, check=True)
        printed.seek(0)
        return printed.read()


if __name__ == "__main__":
    main()
