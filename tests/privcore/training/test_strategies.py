"""Strategy matrices: their Gram matrices against products of whole matrices, and refusals of bad ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

from privcore import DomainError, PrivsweepError
from privcore.likelihood_ratio.correlated.chains import _paths, shortest
from privcore.likelihood_ratio.correlated.majorants import Blocks, _all_blocks, cyclic
from privcore.likelihood_ratio.correlated.minorants import WeightedMean, ultrametric
from privcore.likelihood_ratio.ratios import Composed, Gaussian, OneOfSteps, Product, Ratio, Sampled
from privcore.training.matrix.strategies import canonical, square_root, strategy
from tests.privcore.draws import answer, answered, problem

ROUNDING = 1e-11
RUNS = [(3, 4, 2), (5, 1, 3), (1, 6, 4), (4, 3, 9), (2, 2, 50)]
"""Steps, epochs, and bands."""


def whole(bands: int, total: int) -> Any:
    """Return the T x T Toeplitz matrix of the square root, with columns of norm 1."""
    c = np.array(square_root(bands)) / np.linalg.norm(square_root(bands))
    return sum(c[k] * np.eye(total, k=-k) for k in range(min(bands, total)))


def inverted(bands: int, total: int) -> Any:
    """Return the T x T matrix whose inverse is banded, with columns of norm 1 if they were not cut."""
    d = scipy.special.binom(0.5, np.arange(bands)) * (-1.0) ** np.arange(bands)
    column = scipy.signal.lfilter([1.0], d, np.eye(1, 60 * bands)[0])
    return np.linalg.inv(sum(d[k] * np.eye(total, k=-k) for k in range(min(bands, total)))) / np.linalg.norm(
        column
    )


@pytest.mark.parametrize(("name", "matrix"), [("banded-sqrt", whole), ("banded-inverse-sqrt", inverted)])
@pytest.mark.parametrize(("steps", "epochs", "bands"), RUNS)
def test_gram_matrices_and_columns_are_those_of_the_whole_matrix(
    name: str, matrix: Callable[[int, int], Any], steps: int, epochs: int, bands: int
) -> None:
    c = matrix(bands, steps * epochs)
    means = np.array([c[:, j::steps].sum(axis=1) for j in range(steps)])
    found = strategy(f"{name}({bands})")
    assert found.gram(steps, epochs) == pytest.approx(means @ means.T, rel=ROUNDING, abs=1e-15)
    assert found.sensitivity(steps, epochs) == pytest.approx(
        np.linalg.norm(means, axis=1).max(), rel=ROUNDING
    )
    columns = found.columns(steps, epochs)
    assert columns is not None
    assert columns[0] == pytest.approx(np.linalg.norm(c[:, ::steps], axis=0).tolist(), rel=ROUNDING)


@pytest.mark.parametrize(("steps", "epochs", "bands"), RUNS)
def test_a_file_is_the_matrix_that_it_has(steps: int, epochs: int, bands: int, tmp_path: Path) -> None:
    named = strategy(f"banded-sqrt({bands})")
    np.save(tmp_path / "c.npy", whole(bands, steps * epochs))
    np.save(tmp_path / "g.npy", named.gram(steps, epochs))
    c, g = (
        strategy(str(canonical(f"{kind}({tmp_path / kind[0]}.npy)".replace("/m.", "/c."))))
        for kind in ("matrix", "gram")
    )
    for file in (c, g):
        assert file.reason(steps, epochs) is None
        assert file.gram(steps, epochs) == pytest.approx(named.gram(steps, epochs), rel=ROUNDING, abs=1e-15)
        assert file.sensitivity(steps, epochs) == pytest.approx(
            named.sensitivity(steps, epochs), rel=ROUNDING
        )
    assert c.disjoint(steps) == named.disjoint(steps)
    first = (named.columns(steps, epochs) or ())[0]
    assert (c.columns(steps, epochs) or ())[0] == pytest.approx(sorted(first, reverse=True), rel=ROUNDING)


def test_a_file_is_answered_as_the_strategy_of_that_name(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", whole(3, 12))
    run = {"sigma": 2.0, "steps": 4, "epochs": 3, "delta": 1e-5, "adjacency": "add-remove"}
    for sampling, more in (
        ("none", {}),
        ("cyclic-poisson", {"sampling_probability": 0.2}),
        ("balls-in-bins", {}),
    ):
        file, named = (
            answered("matrix-epsilon", "matrix.certified", sampling=sampling, strategy=text, **run, **more)
            for text in (f"matrix({tmp_path}/c.npy)", "banded-sqrt(3)")
        )
        assert file.lower == pytest.approx(named.lower, rel=2e-3)
        assert file.upper == pytest.approx(named.upper, rel=2e-3)


def covariance(ratio: Ratio | None, bins: int) -> Any:
    """Return the covariance matrix of an expression of means of lognormal factors."""
    match ratio:
        case None:
            return np.zeros((bins, bins))
        case Gaussian():
            return np.full((bins, bins), ratio.mu**2)
        case Product():
            return sum(covariance(each, bins) for each in ratio.ratios)
        case OneOfSteps():
            part = covariance(ratio.ratio, bins // ratio.steps)
            return np.kron(np.eye(ratio.steps), part)
        case WeightedMean():
            first = round(ratio.weight * bins)
            parts = covariance(ratio.first, first), covariance(ratio.second, bins - first)
            return np.block(
                [[parts[0], np.zeros((first, bins - first))], [np.zeros((bins - first, first)), parts[1]]]
            )
    assert not isinstance(ratio, Composed | Sampled), ratio
    raise AssertionError(ratio)


@pytest.mark.parametrize(
    ("steps", "epochs", "bands"), [(8, 3, 4), (13, 2, 6), (24, 5, 24), (7, 1, 3), (1, 2, 1)]
)
def test_the_tree_is_below_and_the_blocks_are_above_in_every_entry(
    steps: int, epochs: int, bands: int
) -> None:
    gram = strategy(f"banded-sqrt({bands})").gram(steps, epochs)
    assert np.all(covariance(ultrametric(gram), steps) <= gram)
    for each in _all_blocks(cyclic(gram)):
        found = covariance(each.ratio, each.number * each.size)
        assert np.linalg.eigvalsh(found)[0] > -1e-9
        assert any(above_all_rotations(gram, found, places) for places in patterns(each, steps)), each


@pytest.mark.parametrize(("steps", "epochs", "bands"), [(8, 3, 4), (13, 2, 6), (24, 5, 24), (7, 1, 3)])
def test_a_chain_is_above_all_rotations_of_its_path(steps: int, epochs: int, bands: int) -> None:
    gram = strategy(f"banded-sqrt({bands})").gram(steps, epochs)
    top = cyclic(gram)
    every = float(top[steps // 2])
    best = shortest(top)
    found = [path for size in (1, 2) for path in _paths(top, every, size, (steps // 2 + 1) // size)]
    assert best is not None
    assert found
    for path in (best, *found):
        apart = np.abs(np.subtract.outer(*[np.arange(path.blocks)] * 2))
        blocks = np.kron(path.correlation**apart, np.full((path.size, path.size), path.variance))
        bound = path.every + blocks + path.own * np.eye(len(blocks))
        assert above_all_rotations(gram, bound, np.arange(len(blocks))), path


def patterns(block: Blocks, bins: int) -> Any:
    """Yield places of the bins of a pattern: at any distance in a block, with any gap between blocks."""
    for apart in range(1, bins + 1):
        for period in range(1, bins // block.number + 1):
            at = [k * period + i * apart for k in range(block.number) for i in range(block.size)]
            if len({place % bins for place in at}) == len(at):
                yield np.array(at)


def above_all_rotations(gram: Any, found: Any, places: Any) -> bool:
    """Return whether a covariance is at least that of the bins at these places, in every rotation."""
    bins = gram.shape[0]
    turned = ((places + turn) % bins for turn in range(bins))
    return all(np.all(found >= gram[np.ix_(each, each)]) for each in turned)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("toeplitz(1,-0.5)", "no negative coefficient, got -0.5"),
        ("toeplitz(0,1)", "the first coefficient above 0"),
        ("toeplitz(1,nan)", "numbers as the coefficients"),
        ("toeplitz(1e300)", "the largest one in"),
        ("toeplitz(1,,2)", "numbers as the coefficients"),
        ("banded-sqrt(0)", r"w in \{1"),
        ("banded-sqrt(2.5)", r"w in \{1"),
        ("banded-sqrt(-3)", r"w in \{1"),
        ("banded-inverse-sqrt(1001)", r"w in \{1, \.\.\., 1000\}"),
        ("matrix(/nowhere/c.npy)", "is not a file"),
        ("identity", "Expected strategy in"),
        ("toeplitz()", "Expected strategy in"),
        ("banded-sqrt", "Expected strategy in"),
    ],
)
def test_an_impossible_strategy_is_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(DomainError, match=message) as error:
        problem("matrix-epsilon", sampling="none", strategy=text, **RUN)
    assert str(error.value).endswith(".")


RUN = {"sigma": 1.0, "steps": 2, "epochs": 2, "delta": 1e-5, "adjacency": "zero-out"}


@pytest.mark.parametrize(
    ("kind", "matrix", "message"),
    [
        ("matrix", [[1.0, 0.5], [0.0, 1.0]], "lower triangular"),
        ("matrix", [[1.0, 0.0], [-0.5, 1.0]], "no negative entry"),
        ("matrix", [[1.0, 0.0]], "square"),
        ("matrix", [1.0, 2.0], "square"),
        ("matrix", [[np.nan]], "finite"),
        ("matrix", [[0.0]], "largest entry"),
        ("matrix", [["a"]], "real numbers"),
        ("gram", [[1.0, 0.5], [0.4, 1.0]], "symmetric"),
        ("gram", [[1.0, 2.0], [2.0, 1.0]], "negative eigenvalue"),
    ],
)
def test_an_impossible_file_is_refused_in_one_sentence(
    kind: str, matrix: Any, message: str, tmp_path: Path
) -> None:
    np.save(tmp_path / "m.npy", np.array(matrix))
    with pytest.raises(DomainError, match=message) as error:
        canonical(f"{kind}({tmp_path / 'm.npy'})")
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x93NUMPY", json.dumps([1, 2]).encode()])
def test_a_file_of_another_format_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.npy").write_bytes(content)
    with pytest.raises(DomainError, match="cannot be read as one"):
        canonical(f"matrix({tmp_path / 'm.npy'})")


def test_a_file_of_the_wrong_shape_or_with_another_content_is_not_answered(tmp_path: Path) -> None:
    path = tmp_path / "c.npy"
    np.save(path, np.eye(6))
    text = str(canonical(f"matrix({path})"))
    wrong = answer("matrix-epsilon", "matrix.certified", sampling="none", strategy=text, **RUN)
    assert "4 rows (steps * epochs) in the file, got 6" in wrong.detail
    gram = answer(
        "matrix-epsilon", "matrix.certified", sampling="cyclic-poisson", strategy=gram_of(tmp_path), **RUN
    )
    assert "has no single columns" in gram.detail
    path.unlink()
    gone = answer("matrix-epsilon", "matrix.certified", sampling="none", strategy=text, **RUN | {"steps": 3})
    assert gone.status in ("not_applicable", "ok")  # the matrix may still be in memory


def gram_of(folder: Path) -> str:
    """Return the strategy of a file with the Gram matrix of two bins."""
    np.save(folder / "g.npy", np.eye(2))
    return f"gram({folder / 'g.npy'})"


def test_a_sampling_probability_is_for_groups_alone() -> None:
    with pytest.raises(PrivsweepError, match="only with sampling=cyclic-poisson"):
        problem("matrix-epsilon", sampling="none", strategy="toeplitz(1)", sampling_probability=0.5, **RUN)
    kind = type(problem("matrix-epsilon", sampling="none", strategy="toeplitz(1)", **RUN))
    whole = kind.asked({"sampling": "cyclic-poisson", "strategy": "toeplitz(1)", **RUN})
    assert whole.as_fields()["sampling_probability"] == 1.0, "without one, a step uses its whole group"


def test_a_file_that_changes_is_read_again_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "c.npy"
    np.save(path, np.eye(2))
    first = canonical(f"matrix({path})")
    assert first is not None
    np.save(path, np.tril(np.ones((2, 2))))
    assert canonical(f"matrix({path})") != first
    assert "has changed" in str(strategy(first).reason(2, 1))
