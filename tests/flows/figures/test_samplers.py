"""Pictures of a training run: the drawn ends are the proved ones, in the colours of the samplers."""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import privsweep as ps
from flows.answers.sourced import computed
from flows.answers.training.along import DELTAS, SamplerCurve, asking, axis_of, curves, words_of
from flows.answers.training.palette import DARK, GROUNDS, LIGHT, NAMES
from flows.figures import draw
from flows.figures.draw import WIDTHS, sketch
from flows.figures.samplers import epsilon_panel, over_picture, tradeoff_picture
from privcore import DomainError, LimitError
from tests.flows.small_store import Command

RUN = {"sigma": "1", "steps": "20", "delta": "1e-5", "adjacency": "zero-out"}
PLAIN = ("--sampling", "none", "--sigma", "1", "--delta", "1e-5")
SHORT: dict[str, Any] = {"axis": "sigma", "values": [0.8, 1.0, 2.0]}


def pictured(sampling: str, **more: Any) -> Figure:
    words = words_of({**RUN, "sampling": sampling})
    given = {**SHORT, **more}
    asked = asking(words, given["axis"] or "delta")
    drawn, _ = over_picture(asked, answering=lambda problem, _: computed(problem), fields=words, **given)
    assert isinstance(drawn, Figure)
    return drawn


def lines_of(drawn: Figure) -> dict[str, list[tuple[list[float], list[float]]]]:
    """The lines by their colours."""
    found: dict[str, list[tuple[list[float], list[float]]]] = {}
    for line in drawn.axes[0].get_lines():
        ends = tuple(np.asarray(each, float).tolist() for each in line.get_data())
        found.setdefault(to_hex(line.get_color()), []).append((ends[0], ends[1]))
    return found


def texts_of(drawn: Figure) -> dict[str, str]:
    """The names next to the axes with their colours."""
    return {text.get_text(): to_hex(text.get_color()) for text in drawn.axes[0].texts}


@pytest.mark.parametrize("ground", GROUNDS)
def test_every_band_has_the_ends_of_its_sampler_its_name_and_its_colour(ground: str) -> None:
    names = ("poisson", "allocation", "none")
    drawn, shades = pictured(",".join(names), ground=ground), {"light": LIGHT, "dark": DARK}[ground]
    assert texts_of(drawn) == {NAMES[name]: shades[name] for name in names}
    lines = lines_of(drawn)
    rows = {
        sigma: ps.compare(sigma=sigma, steps=20, delta=1e-5, adjacency="zero-out") for sigma in (0.8, 2.0)
    }
    for name in names:
        (x, lower), (_, upper) = lines[shades[name]]
        assert x == SHORT["values"]
        assert (lower[0], upper[0]) == (rows[0.8][name].lower, rows[0.8][name].upper)
        assert (lower[2], upper[2]) == (rows[2.0][name].lower, rows[2.0][name].upper)
    assert to_hex(drawn.get_facecolor()) == GROUNDS[ground]["ground"]


def test_all_samplers_are_those_of_compare_and_another_relation_is_named() -> None:
    words = words_of({**RUN, "sampling": "all", "adjacency": "add-remove"})
    found, _ = asking(words, "sigma")(1.0)
    assert set(found) == set(ps.compare(sigma=1.0, steps=20, delta=1e-5))
    drawn, _ = over_picture(
        asking(words_of({**RUN, "sampling": "none,shuffling", "adjacency": "add-remove"}), "sigma"),
        answering=lambda problem, _: computed(problem),
        fields=words,
        **SHORT,
    )
    assert set(texts_of(drawn)) == {"no amplification\n(add-remove)", "shuffled\n(zero-out)"}


def test_a_privacy_profile_has_delta_above_epsilon() -> None:
    ((lower, deltas), (upper, _)) = lines_of(pictured("none", axis="", values=()))[LIGHT["none"]]
    assert deltas == list(DELTAS)
    answer = ps.epsilon(sigma=1.0, steps=20, delta=1e-5, sampling="none", adjacency="zero-out")
    assert (lower[5], upper[5]) == (answer.lower, answer.upper)


def test_a_trade_off_curve_is_that_of_the_profile() -> None:
    answer = ps.epsilon(sigma=1.0, steps=20, delta=1e-5, sampling="poisson", sampling_probability=0.05)
    profile = ps.profile(sigma=1.0, steps=20, sampling="poisson", sample_rate=0.05)
    lines = lines_of(tradeoff_picture({"poisson": answer.problem}, answer.fields))
    (rates, lower), (_, upper) = lines[LIGHT["poisson"]]
    assert (rates, lower, upper) == tuple(
        [row[name] for row in profile["curve"]] for name in ("false_positive_rate", "lower", "upper")
    )
    assert all(p >= q for p, q in zip(lines[LIGHT["none"]][0][1], lower, strict=True))


def test_an_unknown_upper_end_is_a_gap_and_no_number() -> None:
    ends = (0.0, 1.0, 0.5), (np.inf, 3.0, 2.0)
    curve = SamplerCurve(sampling="shuffling", adjacency="zero-out", x=(1.0, 2.0, 3.0), ends=ends)
    ((_, lower), (_, upper)) = lines_of(sketch(epsilon_panel([curve], "sigma", "light"), ""))[
        LIGHT["shuffling"]
    ]
    assert np.isnan([lower[0], upper[0]]).all()
    assert (lower[1:], upper[1:]) == ([1.0, 0.5], [3.0, 2.0])


def test_names_never_cover_one_another() -> None:
    names = [word for word in NAMES if word != "truncated-poisson"]
    found = [
        SamplerCurve(
            sampling=each, adjacency="zero-out", x=(1.0, 2.0), ends=((2.0, 1.0), (2.1, 1.0 + 0.01 * k))
        )
        for k, each in enumerate(names)
    ]
    for width in WIDTHS:
        drawn = sketch(epsilon_panel(found, "sigma", "light"), "", width)
        assert drawn.get_figwidth() == WIDTHS[width]
        boxes = sorted((text.get_window_extent() for text in drawn.axes[0].texts), key=lambda box: box.y0)
        assert len(boxes) == len(names)
        assert max(box.x1 for box in boxes) <= drawn.bbox.x1
        assert all(one.y1 <= other.y0 + 2.0 for one, other in pairwise(boxes))


@pytest.mark.parametrize("kind", draw.FORMATS)
def test_the_command_writes_every_format_twice_alike(kind: str, tmp_path: Path, privsweep: Command) -> None:
    out = tmp_path / f"plot.{kind}"
    contents = []
    for _ in range(2):
        assert privsweep("plot", *PLAIN, "--out", out, "--over", "sigma=1,2") == 0
        assert privsweep.out == f"{out}\n"
        contents.append(out.read_bytes())
    assert contents[0] == contents[1]
    if kind == "svg":
        said = re.findall(r"<text[^>]*>([^<]+)</text>", contents[0].decode())
        assert {"no amplification", "noise multiplier σ", "ε"} <= set(said)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--sigma", "1", "--delta", "1e-5"), "Expected --sampling, since the answer depends on the loader:"),
        ((*PLAIN, "--over", "bogus"), "Expected --over with one of sigma, delta, "),
        ((*PLAIN, "--over", "sigma=2..1"), "Expected --over sigma=FIRST..LAST with 0 < FIRST < LAST"),
        ((*PLAIN, "--over", "sigma=1"), "Expected at least two values of sigma for an axis, got '1'."),
        ((*PLAIN, "--over", "sigma=a,b"), "Expected numbers for --over sigma, got 'a'."),
        ((*PLAIN, "--over", "steps"), "Expected --over steps=FIRST..LAST, since the run has no steps."),
        ((*PLAIN, "--over", "sigma", "--tradeoff"), "Expected one of --over, --tradeoff and --profile."),
        ((*PLAIN, "--out", "a.gif"), "Expected a picture in a file .png, .svg, .pdf, got a.gif."),
        ((*PLAIN, "--width", "9"), "Expected a width in {column, text}, got 9."),
        (("--sampling", "none,truncated-poisson", *PLAIN[2:]), "Expected truncated-poisson alone"),
    ],
)
def test_misuse_is_one_sentence(words: tuple[str, ...], sentence: str, privsweep: Command) -> None:
    assert privsweep("plot", *words) == 2
    assert privsweep.err.startswith(f"privsweep: {sentence}")


def test_without_the_extra_one_sentence_names_it(monkeypatch: pytest.MonkeyPatch, privsweep: Command) -> None:
    monkeypatch.setattr("privcore.extras.find_spec", lambda _: None)
    assert privsweep("plot", *PLAIN) == 2
    assert privsweep.err == (
        "privsweep: `privsweep plot` needs the package matplotlib: pip install 'privsweep[report]'.\n"
    )


def test_points_beyond_the_limit_are_named_and_all_of_them_are_an_error() -> None:
    asked = asking(words_of({**RUN, "sampling": "fixed-size", "sampling_probability": "0.05"}), "sigma")
    with pytest.raises(LimitError):
        curves(asked, "sigma", [1.0, 2.0], lambda problem, _: computed(problem, limit_seconds=0.0))
    found, notes = curves(
        asked,
        "sigma",
        [1.0, 2.0, 3.0],
        lambda problem, where: computed(problem, limit_seconds=300.0 * ("2 of 3" not in where)),
    )
    assert [each.x for each in found] == [(1.0, 3.0)]
    assert [note.partition(":")[0] for note in notes] == ["fixed-size has no point at sigma=2"]


def test_a_whole_parameter_has_whole_values() -> None:
    assert axis_of("batch-size=10..20", {}) == ("batch_size", [10, 11, 13, 14, 16, 18, 20])
    assert axis_of("noise_multiplier", {"sigma": 2.0})[1][-1] == 4.0


def test_answers_of_python_draw_themselves(tmp_path: Path) -> None:
    answer = ps.epsilon(sampling="none", sigma=1.0, delta=1e-5)
    lines = lines_of(answer.plot(over="epochs=1,4"))[LIGHT["none"]]
    assert lines[1][1][1] == ps.epsilon(sampling="none", sigma=1.0, delta=1e-5, epochs=4).upper
    assert answer.plot(profile=True)._repr_svg_().startswith("<?xml")
    answer.plot(tmp_path / "a.pdf", tradeoff=True, width="text", dark=True)
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    found = ps.compare(sigma=1.0, steps=20, delta=1e-5)
    assert len(texts_of(found.plot(over="sigma=1,2"))) == len(found)
    several: Any = ps.epsilon(sampling="none", sigma=[2.0, 1.0], delta=1e-5)
    ((x, lower), _) = lines_of(several.plot())[LIGHT["none"]]
    assert (x, lower) == ([1.0, 2.0], several.lower.tolist()[::-1])
    refused: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: found.plot(over="steps"), "Expected sigma, delta, epochs as the axis of several samplers"),
        (lambda: answer.plot(over="steps=1..9", profile=True), "Expected one of over, tradeoff and profile"),
        (lambda: answer.plot("x.gif"), "Expected a picture"),
    )
    for call, sentence in refused:
        with pytest.raises(DomainError, match=sentence):
            call()
